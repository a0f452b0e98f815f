"""The fence checks of a round: several nodes at once, and all checks of a node at once; what they said is kept until
they are asked again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from podlife.nodehealth.out_of_service.facts import Answer, Result, Verdict
from podlife.nodehealth.out_of_service.fence_checks import Check, Subject
from podlife.nodehealth.out_of_service.metrics import OutOfServiceMetrics

__all__ = ["MOST_AT_ONCE", "Asking"]

log = logging.getLogger(__name__)

# So many nodes are asked about in a round, all at once: then a round takes no longer than the slowest check.
MOST_AT_ONCE = 8


class Asking:
    def __init__(self, checks: Sequence[Check], metrics: OutOfServiceMetrics) -> None:
        self._checks = tuple(checks)
        self._metrics = metrics
        self._verdicts: dict[str, tuple[str, Verdict]] = {}

    def verdict(self, name: str, uid: str) -> Verdict | None:
        """The last one, of the node with this UID."""
        known, verdict = self._verdicts.get(name, ("", None))
        return verdict if known == uid else None

    def keep_only(self, names: Collection[str]) -> None:
        """Of a node that is well again, or gone, nothing counts that was said before."""
        self._verdicts = {name: each for name, each in self._verdicts.items() if name in names}

    async def ask(self, subjects: Sequence[Subject]) -> None:
        """Those who were not asked about for longest come first; who does not come is in the next round."""
        in_turn = sorted(subjects, key=self._asked_at)
        async with asyncio.TaskGroup() as group:
            for subject in in_turn[:MOST_AT_ONCE]:
                group.create_task(self._ask_about(subject), name=f"fence checks of {subject.name}")

    def _asked_at(self, subject: Subject) -> float:
        verdict = self.verdict(subject.name, subject.uid)
        return float("-inf") if verdict is None else verdict.asked_at

    async def _ask_about(self, subject: Subject) -> None:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        answers = await asyncio.gather(*(self._ask(check, subject) for check in self._checks))
        verdict = Verdict(tuple(answers), asked_at, loop.time())
        self._verdicts[subject.name] = subject.uid, verdict

    async def _ask(self, check: Check, subject: Subject) -> Answer:
        try:
            answer = await check.ask(subject)
        except Exception as error:
            # One that breaks its promise has confirmed nothing.
            log.warning("%s failed for node %s", check.name, subject.name, exc_info=error)
            answer = Answer(check.name, Result.FAILED, f"it failed: {type(error).__name__}")
        self._metrics.checks[check.kind, answer.result] += 1
        return answer
