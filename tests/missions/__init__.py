"""Mission types for tests and benchmarks: small ones, each of which shows one thing."""
