"""The agent killed with -9 at many points of a pod's life: no container runs twice, none is lost, and whoever comes
next reports every exit code and can end everything."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from podlife.kubelet.runtime import ContainerRuntimeError, ContainerState, Runtime
from podlife.kubelet.runtimes.containerd import ContainerdRuntime
from tests.conformance.runtime.machines import ended
from tests.kit.wait import until

from .daemon import Daemon
from .dying_agent import settings_of, witness

# How many points; PODLIFE_CRASH_ROUNDS asks for more of them, up to every call in each of its moments.
_ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "14"))

_ENDS = [
    ("short", 5, "Error"),
    ("long", 6, "Error"),
    # The daemon gives up a start whose caller has gone.
    ("short", 128, "StartError"),
    ("long", 128, "StartError"),
]


def points() -> Iterator[str]:
    """One moment of each call in turn, first every third of them."""
    for round_, shift in itertools.product(range(3), range(3)):
        for number in range(1 + shift, 60, 3):
            yield f"{number} {('under', 'after', 'before')[(number + round_) % 3]}"


async def test_whoever_comes_next_finds_everything_and_nothing_ran_twice(
    daemon: Daemon, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.real.containerd.dying_agent", str(daemon.socket), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as agents:
        assert agents.stdin is not None
        assert agents.stdout is not None
        outcomes: Counter[str] = Counter()
        for point in itertools.islice(points(), _ROUNDS):
            (tmp_path / "witness").unlink(missing_ok=True)
            agents.stdin.write(f"{point}\n")
            agents.stdin.flush()
            outcome = agents.stdout.readline().strip()
            outcomes[outcome] += 1
            async with ContainerdRuntime(settings_of(daemon.socket, tmp_path)) as runtime:
                await _check(runtime, tmp_path, point)
        agents.stdin.close()
    assert set(outcomes) <= {"killed", "done"}
    assert outcomes["killed"] >= min(_ROUNDS, 10)


async def _removed(runtime: Runtime, sandbox_id: str) -> None:
    """As an agent removes it: again after an error. The daemon may still be undoing the killed agent's call, and then
    loses its connection to the shim in the middle of ours ("ttrpc: closed")."""

    async def is_removed() -> bool:
        with contextlib.suppress(ContainerRuntimeError):
            await runtime.remove_sandbox(sandbox_id)
            return True
        return False

    await until(is_removed)


async def _check(runtime: Runtime, folder: Path, point: str) -> None:
    containers = await runtime.list_containers()
    for status in containers:
        has_run = status.state is not ContainerState.CREATED and status.config.name == "short"
        now = await ended(runtime, status.id) if has_run else status
        if now.is_running:
            # A container runs before its program has said a word.
            await until(lambda name=now.config.name: name in witness(folder))
        if now.state is ContainerState.EXITED:
            assert (now.config.name, now.exit_code, now.reason) in _ENDS, point
    for sandbox in await runtime.list_sandboxes():
        await _removed(runtime, sandbox.id)
    assert await runtime.list_containers() == [], point
    started = Counter(witness(folder))
    assert all(times == 1 for times in started.values()), point
    # A container that exists as started has run, and its witness with it.
    assert {s.config.name for s in containers if s.started_at is not None} <= set(started), point
