"""From a sentence to what is meant by it, and from what became of that to a sentence; no I/O once it is loaded."""
