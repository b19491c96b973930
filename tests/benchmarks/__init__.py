"""The figures that the product promises, each against a peer measured in the same run: ``python -m tests.benchmarks``.

Absolute numbers say as much about the machine as about the code, so every figure is a ratio to a peer on the same
server in the same minute: arq as it comes, a bare ASGI route, one PING. The floors hold on Debian's Redis; the bundled
server stands beside it. Throughput is read from outside, by what handlers write to a file, in both alike.
"""
