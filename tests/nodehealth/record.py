"""Records golden outcomes: `python -m tests.nodehealth.record [name ...]`.

Plays every scenario twice with kube-controller-manager on kube-apiserver, and writes only what came out the same both
times; exits with 1 when something did not, or did not get through. Needs `make real-parts`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from podlife.clock import SystemClock
from tests.kit.real_parts import Server, controller_manager, kube_apiserver
from tests.nodehealth.outcome import difference
from tests.nodehealth.runs import KUBE_CONTROLLERS, KUBE_SETTINGS, play_all
from tests.nodehealth.scenarios import SCENARIOS, golden_file
from tests.nodehealth.stage import FLAGS
from tests.workloads.runs import connect


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nodehealth.record")
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []], help="all when left out")
    names = parser.parse_args().names or list(SCENARIOS)
    with (
        tempfile.TemporaryDirectory() as folder,
        kube_apiserver(Path(folder) / "kube", KUBE_SETTINGS) as server,
        controller_manager(Path(folder) / "kcm", server, KUBE_CONTROLLERS, *FLAGS),
    ):
        return asyncio.run(_record(server, names))


async def _record(server: Server, names: list[str]) -> int:
    chosen = [SCENARIOS[name] for name in names]
    async with connect(server.kubeconfig) as client:
        first, second = [await play_all(client, SystemClock(), chosen, suffix) for suffix in "ab"]
    path = golden_file()
    written = json.loads(path.read_text()) if path.exists() else {}
    failed = 0
    for name in names:
        one, two = first[name], second[name]
        if isinstance(one, Exception) or isinstance(two, Exception):
            why = f"failed: {one!r}" if isinstance(one, Exception) else f"failed: {two!r}"
        else:
            why = difference(one, two)
        print(f"{name}: {why or 'recorded'}")  # noqa: T201 - a command
        failed += bool(why)
        if not why:
            written[name] = one
    known = {name: outcome for name, outcome in written.items() if name in SCENARIOS}
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
