"""Webhooks as Standard Webhooks has them: signed, sent once a try, and never into the network that sends them."""
