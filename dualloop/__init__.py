"""The product as one command; the only package that may import both loops."""
