"""What kube-controller-manager made of the scenarios, at each of their marks.

    python -m tests.volumes.golden [name ...]

records it anew, on a kube-apiserver.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from podlife.api.codec import Object

_FILE = Path(__file__).with_name("golden.json")


@cache
def _read() -> dict[str, list[Object]]:
    recorded: dict[str, list[Object]] = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    return recorded


def golden(name: str) -> list[Any]:
    return _read()[name]


async def _record(kubeconfig: Path, names: list[str]) -> dict[str, list[Object]]:
    from tests.volumes.runs import play_all
    from tests.workloads.runs import connect

    async with connect(kubeconfig) as client:
        return await play_all(client, names)


def main() -> None:
    from tests.kit.real_parts import controller_manager, kube_apiserver
    from tests.volumes.runs import UPSTREAM
    from tests.volumes.scenarios import SCENARIOS

    names = sys.argv[1:] or list(SCENARIOS)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with (
            kube_apiserver(folder / "server") as server,
            controller_manager(folder / "kcm", server, UPSTREAM),
        ):
            recorded = asyncio.run(_record(server.kubeconfig, names))
    _FILE.write_text(json.dumps(_read() | recorded, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
