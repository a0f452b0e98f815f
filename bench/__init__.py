"""Benchmarks: podlife beside its peers, on the same machine, in one run. `make bench` prints ratios."""
