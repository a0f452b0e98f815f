"""What a policy costs the pod collector: a hundred rules over a hundred thousand pods, beside the plain collector.

Each is measured in processes of its own: its memory at the full size, and what an event takes from the wire to the
decision at three sizes a tenfold apart. That an event does not depend on how many pods there are is judged by the
largest beside the smallest, with room for caches of a processor that no longer hold everything.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.report import Goal, Table


@dataclass(frozen=True)
class Size:
    pods: int = 100_000

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=10_000)

    @property
    def steps(self) -> tuple[int, int, int]:
        return (self.pods // 100, self.pods // 10, self.pods)


def run(folder: Path, size: Size) -> Table:
    plain = [_measure("plain", count) for count in size.steps]
    governed = [_measure("policy", count) for count in size.steps]
    table = Table(f"A policy of 100 rules over {size.pods} pods", ("plain", "policy"))
    table.add("bytes/pod", plain[-1]["bytes_per_pod"], governed[-1]["bytes_per_pod"], Goal.at_most(1.2))
    for count, theirs, ours in zip(size.steps, plain, governed, strict=True):
        table.add(f"event at {count} pods, µs", theirs["event_us"], ours["event_us"], None)
    small, large = governed[0]["event_us"], governed[-1]["event_us"]
    table.add("an event at 100 times the pods", small, large, Goal.at_most(2.0))
    table.add("read and synced, s", plain[-1]["sync_seconds"], governed[-1]["sync_seconds"], None)
    return table


def _measure(kind: str, count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.podgc_policy_index", kind, str(count)],
        check=True,
        stdout=subprocess.PIPE,
        timeout=600,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
