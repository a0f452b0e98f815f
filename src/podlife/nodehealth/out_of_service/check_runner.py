"""Runs the fence checks: several nodes, and all checks of a node, concurrently. Results are kept until the next run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from podlife.nodehealth.metrics import OutOfServiceMetrics
from podlife.nodehealth.out_of_service.fence_checks import (
    FenceAnswer,
    FenceCheck,
    FenceResult,
    FenceSubject,
    FenceVerdict,
)

log = logging.getLogger(__name__)

# Nodes checked per pass, concurrently: a pass takes no longer than the slowest check.
MOST_AT_ONCE = 8


class CheckRunner:
    def __init__(self, checks: Sequence[FenceCheck], metrics: OutOfServiceMetrics) -> None:
        self._checks = tuple(checks)
        self._metrics = metrics
        self._verdicts: dict[str, tuple[str, FenceVerdict]] = {}

    def verdict(self, name: str, uid: str) -> FenceVerdict | None:
        """The last verdict about the node with this UID."""
        known, verdict = self._verdicts.get(name, ("", None))
        return verdict if known == uid else None

    def keep_only(self, names: Collection[str]) -> None:
        """Drop verdicts about nodes that have recovered or are gone."""
        self._verdicts = {name: each for name, each in self._verdicts.items() if name in names}

    async def ask(self, subjects: Sequence[FenceSubject]) -> None:
        """Least recently checked nodes first; the rest follows in the next pass."""
        in_turn = sorted(subjects, key=self._asked_at)
        async with asyncio.TaskGroup() as group:
            for subject in in_turn[:MOST_AT_ONCE]:
                group.create_task(self._ask_about(subject), name=f"fence checks of {subject.name}")

    def _asked_at(self, subject: FenceSubject) -> float:
        verdict = self.verdict(subject.name, subject.uid)
        return float("-inf") if verdict is None else verdict.asked_at

    async def _ask_about(self, subject: FenceSubject) -> None:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        answers = await asyncio.gather(*(self._ask(check, subject) for check in self._checks))
        verdict = FenceVerdict(tuple(answers), asked_at, loop.time())
        self._verdicts[subject.name] = subject.uid, verdict

    async def _ask(self, check: FenceCheck, subject: FenceSubject) -> FenceAnswer:
        try:
            answer = await check.ask(subject)
        except Exception as error:
            # A check that violates its contract confirms nothing.
            log.warning("%s failed for node %s", check.name, subject.name, exc_info=error)
            answer = FenceAnswer(check.name, FenceResult.FAILED, f"it failed: {type(error).__name__}")
        self._metrics.checks[check.kind, answer.result] += 1
        return answer
