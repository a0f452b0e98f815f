"""What the audit log costs: the same requests to our own server without a log, and with one at two levels."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit.real_parts import Server, podlife_apiserver

from bench.apiserver import PODS, creates
from bench.load import Load
from bench.processes import cpu_seconds
from bench.report import Goal, Table

_ROUNDS = 3
# How much more processor time a request may take at each level: a create, and a get.
_GOALS = (("Metadata", 1.25, 2.0), ("RequestResponse", 1.5, 3.0))


@dataclass(frozen=True)
class Size:
    creates: int = 4_000
    gets: int = 12_000

    @classmethod
    def quick(cls) -> Size:
        return cls(creates=1_000, gets=2_000)


@dataclass
class Figures:
    """Processor time of the server for a request, the thread of the log included, in microseconds: unlike a rate it
    depends little on what else the machine does. The least of several rounds."""

    create: float = math.inf
    get: float = math.inf


# A log of everything, reads too: more than anybody records.
_LEVELS = {"off": "", "Metadata": "Metadata", "RequestResponse": "RequestResponse"}


def run(folder: Path, size: Size) -> Table:
    figures = {name: Figures() for name in _LEVELS}
    # Round by round, so that a slow moment of the machine meets all of them.
    for number in range(_ROUNDS):
        for name, level in _LEVELS.items():
            with podlife_apiserver(folder / f"{name}-{number}", *_flags(folder, level)) as server:
                asyncio.run(_load(server, figures[name], size))
    return _compare(figures)


def _flags(folder: Path, level: str) -> list[str]:
    if not level:
        return []
    policy = folder / f"{level}.json"
    rules = [{"level": level, "omitStages": ["RequestReceived"]}]
    policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / level}.log",
        "--audit-log-maxbackup=1",
    ]


async def _load(server: Server, figures: Figures, size: Size) -> None:
    async with Load(server.host, server.port, server.ca_file, server.tokens["admin"]) as load:
        requests = creates(load, 0, size.creates)
        figures.create = min(figures.create, await _cost(server, load, requests, size.creates))
        gets = (load.request("GET", f"{PODS}/pod-{n % size.creates:06d}") for n in range(size.gets))
        figures.get = min(figures.get, await _cost(server, load, gets, size.gets))


async def _cost(server: Server, load: Load, requests: Iterator[bytes], count: int) -> float:
    before = cpu_seconds(server.pid)
    await load.run(requests)
    # The last events are written a moment after the last answer.
    await asyncio.sleep(0.3)
    return (cpu_seconds(server.pid) - before) / count * 1e6


def _compare(figures: dict[str, Figures]) -> Table:
    table = Table("Audit log: podlife without, and with a log of every request", ("off", "on"))
    off = figures["off"]
    for level, create, get in _GOALS:
        on = figures[level]
        table.add(f"CPU of a create, µs, {level}", off.create, on.create, Goal.at_most(create))
        table.add(f"CPU of a get, µs, {level}", off.get, on.get, Goal.at_most(get))
    return table
