"""What an `podlife up` that was killed leaves: pods that run on, a token to join with. `down` ends both.

Nothing is looked for by name. The lock on the data folder shows that neither that `up` nor a part of it runs; the pods
are those that the runtime of each of its nodes has recorded, and that it can tell from a stranger's processes.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.daemons.node import make_runtime
from podlife.errors import PodlifeError
from podlife.localcluster.bootstrap_token import Joining
from podlife.localcluster.components import node_command
from podlife.localcluster.forkserver import Message
from podlife.localcluster.pod_shutdown import end_pods, running_pods
from podlife.localcluster.state_dir import Holder, UpFolder


def end_leftovers(folder: UpFolder, holder: Holder, seconds: float, *, is_at_once: bool) -> int:
    """How many pods there were. Raises ConfigError while a part of it still runs, PodlifeError when pods do after that.

    The folder is this process's from then on."""
    folder.claim()
    Joining(folder.path).close()
    ended, left = loop.run(_end_pods(holder.pods, seconds, is_at_once=is_at_once))
    if left:
        raise PodlifeError(f"{left} of the pods of {folder.path} have not ended: try again")
    folder.forget(holder)
    return ended


async def _end_pods(
    orders: tuple[dict[str, Any], ...], seconds: float, *, is_at_once: bool
) -> tuple[int, int]:
    """How many there were, and how many have not ended."""
    clock, at_once = SystemClock(), asyncio.Event()
    if is_at_once:
        at_once.set()
    async with AsyncExitStack() as stack:
        runtimes = [
            await stack.enter_async_context(make_runtime(node_command(each), each["address"], clock))
            for each in orders
        ]
        before = sum([len(await running_pods(each)) for each in runtimes])
        with loop.stopped_by_signals(at_once.set):
            async with asyncio.TaskGroup() as group:
                for runtime, order in zip(runtimes, orders, strict=True):
                    grace = min(seconds, order["grace_seconds"])
                    group.create_task(end_pods(runtime, grace, at_once, _Silent()), name="pods of a node")
        return before, sum([len(await running_pods(each)) for each in runtimes])


class _Silent:
    """There is no supervisor to be told."""

    def tell(self, message: Message) -> None: ...
