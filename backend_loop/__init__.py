"""The background loop: decides and does."""
