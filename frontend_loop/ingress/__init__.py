"""Where foreign bytes come in; every ingress ends at the door."""
