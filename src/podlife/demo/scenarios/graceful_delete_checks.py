"""The steps of a graceful deletion: each is made to happen, or waited for, and seen."""

from __future__ import annotations

import asyncio

from podlife.api.codec import Object
from podlife.client import EVENTS, PODS, DeleteOptions, ListOptions
from podlife.demo.recorder import NotSeenError, Seen
from podlife.demo.scenario import (
    Stage,
    Story,
    is_terminating,
    listed,
    node_of,
    uid_of,
)
from podlife.demo.workloads import Line, pod, template
from podlife.errors import NotFoundError

__all__ = ["GracefulDelete"]

_GRACES = {"polite": 10, "stubborn": 3, "lonely": 2}
_HOOK_SECONDS = 2
# Far longer than any grace here.
_LONG_HOOK_SECONDS = 300
_HANGING_SECONDS = 3.0
_LEAST_STOP_SECONDS = 2


class GracefulDelete(Story):
    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._record = stage.record
        self._journal = stage.journal
        self._pods: dict[str, Object] = {}
        self._deleted_at = 0.0
        self.facts |= {f"{name}_seconds": grace for name, grace in _GRACES.items()}
        self.facts |= {"hook_seconds": _HOOK_SECONDS, "journal": stage.journal.path}

    async def begin(self) -> None:
        hook, long_hook = (
            self._journal.hook(f"sleep {each}") for each in (_HOOK_SECONDS, _LONG_HOOK_SECONDS)
        )
        containers = {
            "polite": self._journal.polite(lifecycle=hook),
            "stubborn": self._journal.stubborn(lifecycle=long_hook),
            "lonely": self._journal.polite(),
        }
        for name, container in containers.items():
            made = pod(name, template(name, container, grace_seconds=_GRACES[name]))
            await self.stage.client.create(PODS, made, "default")
        for name in containers:
            [self._pods[name]] = await self.stage.until_pods_ready(name, 1)
            began = await self._line(name, "began")
            self.facts |= {f"{name}_node": began.node, f"{name}_pid": began.pid}
        self.facts["places"] = listed([f"{name} on {node_of(each)}" for name, each in self._pods.items()])

    # polite

    async def delete_polite(self) -> None:
        answer = await self._delete("polite")
        if not is_terminating(answer):
            raise NotSeenError("polite marked by the answer")
        metadata = (await self.stage.client.get(PODS, "polite", "default"))["metadata"]
        self._see_alive("polite")
        self.facts |= {
            "deletion_timestamp": metadata["deletionTimestamp"],
            "deletion_seconds": metadata["deletionGracePeriodSeconds"],
        }

    async def hook_began(self) -> None:
        hook = await self._line("polite", "hook-began")
        self.facts |= {"hook_pid": hook.pid, "killing": await self._event("polite", "Killing")}

    async def told_to_end(self) -> None:
        hook, end = await self._line("polite", "hook-ended"), await self._line("polite", "ended")
        words = [line.word for line in self._journal.lines("polite")]
        if words != ["began", "hook-began", "hook-ended", "ended"]:
            raise NotSeenError(f"its begin, the hook and its end in this order, but {listed(words)}")
        left = _GRACES["polite"] - (end.at - self._deleted_at)
        self.facts |= {"hook_took": hook.at - self._deleted_at, "polite_left": left}

    async def reported(self) -> None:
        await self._see_outcome("polite", phase="Succeeded", code=0)

    async def removed(self) -> None:
        gone = await self._see_removed("polite")
        try:
            await self.stage.client.get(PODS, "polite", "default")
        except NotFoundError:
            self.facts["polite_took"] = gone.at - self._deleted_at
        else:
            raise NotSeenError("404 for polite")

    # stubborn

    async def overrun(self) -> None:
        await self._delete("stubborn")
        hook = await self._line("stubborn", "hook-began")
        asked = await self._line("stubborn", "asked")
        after = asked.at - self._deleted_at
        if after < _GRACES["stubborn"] or self._journal.lines("stubborn", "hook-ended"):
            raise NotSeenError(f"the whole grace for the hook of stubborn: TERM came after {after:.1f} s")
        self.facts |= {"stuck_hook_pid": hook.pid, "asked_after": after}

    async def killed(self) -> None:
        await self._see_outcome("stubborn", phase="Failed", code=137)
        gone = await self._see_removed("stubborn")
        after = gone.at - self._deleted_at
        if after < _GRACES["stubborn"] + _LEAST_STOP_SECONDS:
            raise NotSeenError(f"2 s more than its grace for stubborn, which was over after {after:.1f} s")
        if self._journal.alive("stubborn", node_of(self._pods["stubborn"])):
            raise NotSeenError("the end of stubborn's process")
        self.facts["killed_after"] = after

    # lonely

    async def hanging(self) -> None:
        node = node_of(self._pods["lonely"])
        agent = await self.stage.cluster.freeze(node)
        await self._delete("lonely")
        over = self._deleted_at + _GRACES["lonely"] + _HANGING_SECONDS
        while asyncio.get_running_loop().time() < over:
            await asyncio.sleep(0.1)
            self._see_alive("lonely")
        found = self._record.pod("lonely")
        if found is None or not is_terminating(found):
            raise NotSeenError("lonely Terminating")
        self.facts |= {"agent": agent, "hanging_seconds": _HANGING_SECONDS}

    async def finished(self) -> None:
        thawed_at = asyncio.get_running_loop().time()
        self.stage.cluster.thaw(node_of(self._pods["lonely"]))
        gone = await self._see_removed("lonely")
        await self._line("lonely", "ended")
        self.facts["returned_took"] = gone.at - thawed_at

    # What several steps do

    async def _delete(self, name: str) -> Object:
        self._deleted_at = asyncio.get_running_loop().time()
        options = DeleteOptions(uid=uid_of(self._pods[name]))
        answer: Object = await self.stage.client.delete(PODS, name, "default", options=options)
        return answer

    async def _line(self, name: str, word: str) -> Line:
        def find() -> Line | None:
            return next(iter(self._journal.lines(name, word)), None)

        return await self._record.until(f"{name} in the journal with {word!r}", find)

    async def _event(self, name: str, reason: str) -> str:
        """Its message. Events are sent beside everything else, so that it may take a moment."""
        selector = f"involvedObject.uid={uid_of(self._pods[name])},reason={reason}"
        deadline = asyncio.get_running_loop().time() + 20
        while asyncio.get_running_loop().time() < deadline:
            page = await self.stage.client.list(
                EVENTS, "default", options=ListOptions(field_selector=selector)
            )
            if page.items:
                return str(page.items[0]["message"])
            await asyncio.sleep(0.1)
        raise NotSeenError(f"the event {reason} of {name}")

    def _see_alive(self, name: str) -> None:
        if not self._journal.alive(name, node_of(self._pods[name])):
            raise NotSeenError(f"the process of {name} running on")

    async def _see_outcome(self, name: str, *, phase: str, code: int) -> None:
        def is_over(seen: Seen) -> bool:
            return _exit_code(seen.object) is not None and seen.object["status"].get("phase") == phase

        seen = await self._record.until_seen(f"{name} {phase}", uid_of(self._pods[name]), is_over)
        if _exit_code(seen.object) != code:
            raise NotSeenError(f"exit code {code} of {name}, but {_exit_code(seen.object)}")
        self.facts |= {f"{name}_phase": phase, f"{name}_code": code}

    async def _see_removed(self, name: str) -> Seen:
        """First the update, then the removal."""
        uid = uid_of(self._pods[name])
        gone = await self._record.until_seen(f"{name} gone", uid, lambda seen: seen.is_gone)
        updated = [
            each
            for each in self._record.history(uid)
            if not each.is_gone and each.object["metadata"].get("deletionGracePeriodSeconds") == 0
        ]
        if not updated:
            raise NotSeenError(f"{name} with a grace of 0 before it was gone")
        return gone


def _exit_code(found: Object) -> int | None:
    for status in (found.get("status") or {}).get("containerStatuses") or ():
        terminated = (status.get("state") or {}).get("terminated")
        return terminated["exitCode"] if terminated else None
    return None
