"""The contract between the two loops: only what both need."""
