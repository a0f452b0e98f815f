"""`python -m bench [--quick] [NAME…]`: run the benchmarks and print what they found."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import uvloop

from bench import apiserver

NAMES = ("apiserver",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="podlife beside its peers, in one run")
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the load: to try the benchmark itself"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    uvloop.install()
    with tempfile.TemporaryDirectory(prefix="podlife-bench-") as folder:
        size = apiserver.Size.quick() if arguments.quick else apiserver.Size()
        table = apiserver.run(Path(folder), size)
    print(table)
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
