"""Records golden outcomes: `python -m tests.resourcequota.record [name ...]`.

Plays scenarios with kube-controller-manager on kube-apiserver. Needs `make real-parts`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.kit.real_parts import controller_manager, kube_apiserver
from tests.resourcequota.runs import CONTROLLER, GOLDEN, record_all
from tests.resourcequota.scenarios import SCENARIOS
from tests.resourcequota.stage import prepare
from tests.workloads.runs import connect


async def _record(kubeconfig: Path, names: list[str]) -> None:
    async with connect(kubeconfig) as client:
        await prepare(client)
        recorded = await record_all(client, names)
    before = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    written = {name: marks for name, marks in (before | recorded).items() if name in SCENARIOS}
    GOLDEN.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.resourcequota.record")
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []], help="all when left out")
    names = parser.parse_args().names or list(SCENARIOS)
    with (
        tempfile.TemporaryDirectory() as folder,
        kube_apiserver(Path(folder) / "kube") as server,
        controller_manager(Path(folder) / "kcm", server, [CONTROLLER]),
    ):
        asyncio.run(_record(server.kubeconfig, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
