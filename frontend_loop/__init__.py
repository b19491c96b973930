"""The foreground loop: accepts and tells, decides nothing."""
