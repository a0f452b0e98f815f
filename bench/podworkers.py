"""20,000 pods through the pod workers, from their start until they are forgotten, beside the kubelet's own.

The kubelet's workers are no program of their own, so they are not run here: what stands beside ours is what was
measured of them once, on two cores like these. Every pod of ours is created, synced, killed with somebody waiting,
ended and forgotten, by steps that do nothing, on one core. The best of a few runs counts: it is the code that is
measured, not its neighbours.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.report import Goal, Table

# Kubernetes v1.36: 20,000 pods from start to forgotten in 0.72 s on two cores.
KUBELET_PODS_PER_SECOND = 20_000 / 0.72
KUBELET_CPU_SECONDS = 0.57
KUBELET_MB = 176.0
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 20_000
    runs: int = 5

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=2_000, runs=1)


def run(folder: Path, size: Size) -> Table:
    plain, awaited = (_best(size, kind) for kind in ("plain", "awaited"))
    table = Table(f"pod workers: {size.pods} pods, start to forgotten", ("kubelet", "podlife"))
    rate = size.pods / plain["seconds"]
    table.add("pods/s, steps that answer at once", KUBELET_PODS_PER_SECOND, rate, Goal.at_least(1.0))
    # A coroutine per step has no counterpart there: it is shown for who writes such steps.
    table.add("pods/s, steps that are awaited", KUBELET_PODS_PER_SECOND, size.pods / awaited["seconds"], None)
    # Theirs are spread over two cores; on a machine with neighbours this is the figure that does not depend on them.
    table.add("processor seconds", KUBELET_CPU_SECONDS * size.pods / 20_000, plain["cpu_seconds"], None)
    table.add("peak memory, MB", KUBELET_MB, max(plain["peak_mb"], awaited["peak_mb"]), Goal.at_most(0.5))
    table.note(
        f"the kubelet's figures were measured once, 20000 pods on two cores; ours: best of {size.runs} on one core"
    )
    return table


def _best(size: Size, kind: str) -> dict[str, float]:
    return min((_run(size.pods, kind) for _ in range(size.runs)), key=lambda each: each["seconds"])


def _run(pods: int, kind: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.podworkers_run", str(pods), kind]
    done = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True, timeout=120)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
