"""What a killed `podlife up` leaves behind: running pods and a bootstrap token. `podlife down` removes both.

Nothing is searched by name. The lock on the state directory proves that neither that `up` nor a component of it runs;
the runtime of each node has recorded its pods and distinguishes them from other processes.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from podlife.clock import SystemClock
from podlife.daemons.event_loop import stopped_by_signals
from podlife.daemons.node import make_runtime
from podlife.errors import PodlifeError
from podlife.localcluster.bootstrap_token import BootstrapToken
from podlife.localcluster.components import runtime_settings
from podlife.localcluster.forkserver import Message
from podlife.localcluster.pod_shutdown import end_pods, release_volumes, running_pods
from podlife.localcluster.state_dir import Holder, StateDir


async def end_leftovers(state_dir: StateDir, holder: Holder, seconds: float, *, is_at_once: bool) -> int:
    """Return the number of pods that were ended. Raises ConfigError while a component is still running, PodlifeError if
    pods are left. Claims the state directory for this process."""
    state_dir.claim()
    BootstrapToken(state_dir.path).revoke()
    ended, left = await _end_pods(holder.pods, seconds, is_at_once=is_at_once)
    if left:
        raise PodlifeError(f"{left} of the pods of {state_dir.path} have not ended: try again")
    state_dir.forget(holder)
    return ended


async def _end_pods(
    configs: tuple[dict[str, Any], ...], seconds: float, *, is_at_once: bool
) -> tuple[int, int]:
    """The number of pods before, and of those left."""
    clock, at_once = SystemClock(), asyncio.Event()
    if is_at_once:
        at_once.set()
    async with AsyncExitStack() as stack:
        runtimes = [
            await stack.enter_async_context(make_runtime(runtime_settings(each), each["address"], clock))
            for each in configs
        ]
        before = sum([len(await running_pods(each)) for each in runtimes])
        with stopped_by_signals(at_once.set):
            async with asyncio.TaskGroup() as group:
                for runtime, config in zip(runtimes, configs, strict=True):
                    grace = min(seconds, config["grace_seconds"])
                    group.create_task(
                        end_pods(runtime, grace, at_once, _NoSupervisor()), name="pods of a node"
                    )
        for runtime, config in zip(runtimes, configs, strict=True):
            await release_volumes(runtime, runtime_settings(config).data)
        return before, sum([len(await running_pods(each)) for each in runtimes])


class _NoSupervisor:
    def send(self, message: Message) -> None: ...
