"""`python -m bench [--quick] [NAME…]`: run the benchmarks and print what they found."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import uvloop

from bench import apiserver, audit, idle_agent, podgc, podgc_policy, podworkers, replicaset, sim, ui, up

BENCHMARKS = {
    "apiserver": apiserver,
    "audit": audit,
    "podgc": podgc,
    "podgc-policy": podgc_policy,
    "podworkers": podworkers,
    "replicaset": replicaset,
    "sim": sim,
    "idle-agent": idle_agent,
    "ui": ui,
    "up": up,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="podlife beside its peers, in one run")
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the load: to try the benchmark itself"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - BENCHMARKS.keys():
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}")
    uvloop.install()
    has_missed = False
    for name in arguments.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        with tempfile.TemporaryDirectory(prefix="podlife-bench-") as folder:
            size = benchmark.Size.quick() if arguments.quick else benchmark.Size()
            table = benchmark.run(Path(folder), size)
        print(table, flush=True)
        has_missed = has_missed or bool(table.missed)
    return 1 if has_missed else 0


if __name__ == "__main__":
    sys.exit(main())
