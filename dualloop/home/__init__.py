"""The simulated home: devices in a process of their own, to try everything on without owning a lamp."""
