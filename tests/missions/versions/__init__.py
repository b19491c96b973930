"""One type as three releases of its author have it, each in a module of its own: what a rolling deploy mixes.

The examples beside them are missions that the older releases left behind, and what the newest one must make of them.
"""
