"""Fence checks that run a user's program: one confirms by exit code, one reports whether the provider has the
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from podlife.nodehealth.out_of_service.facts import FenceAnswer, FenceResult
from podlife.nodehealth.out_of_service.fence_checks.check import FenceSubject, shown
from podlife.nodehealth.out_of_service.fence_checks.program import MOST_OUTPUT, Ended, run_program

_GONE, _EXISTS = "gone", "exists"


class _Program:
    kind = "program"

    def __init__(self, argv: Sequence[str], *, seconds: float) -> None:
        self._argv = tuple(argv)
        self._seconds = seconds
        self.name = f"{self.kind} {PurePath(self._argv[0]).name}"

    def _answer(self, result: FenceResult, text: str = "") -> FenceAnswer:
        return FenceAnswer(self.name, result, text)

    async def _run(self, subject: FenceSubject, *arguments: str) -> Ended | FenceAnswer:
        """What it ended with; or why it says nothing."""
        if any(each.startswith("-") for each in arguments):
            # It would be an option to the program, chosen by the node.
            return self._answer(
                FenceResult.FAILED, "what the node says of itself cannot be an argument: it begins with -"
            )
        try:
            ended = await run_program((*self._argv, *arguments), subject.environment, seconds=self._seconds)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            return self._answer(FenceResult.FAILED, f"it cannot be run: {reason or error}")
        if ended.code is None:
            why = f", and printed more than {MOST_OUTPUT} bytes" if ended.is_full else ""
            return self._answer(FenceResult.TIMEOUT, f"it did not end within {self._seconds:g} s{why}")
        return ended


class CommandCheck(_Program):
    """Exit code 0 confirms that the machine is dead. Its last four arguments are the node's name, UID, providerID and
    internal addresses (with commas), empty where there is none; the same stands in its environment."""

    kind = "command"

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        ended = await self._run(subject, *subject.arguments)
        if isinstance(ended, FenceAnswer):
            return ended
        if ended.code == 0:
            return self._answer(FenceResult.DEAD)
        return self._answer(FenceResult.NOT_DEAD, _how(ended))


class ProviderGoneCheck(_Program):
    """The program's last argument is a providerID. It has to end with 0 and to print one word: `gone` if the provider
    has no such machine, `exists` if it has. The exit code alone says nothing: the programs of providers fail in the
    same way for a machine that is not there and for a network that is not."""

    kind = "provider-gone"

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        if not subject.provider_id:
            return self._answer(FenceResult.FAILED, "the node has no providerID")
        ended = await self._run(subject, subject.provider_id)
        if isinstance(ended, FenceAnswer):
            return ended
        if ended.code != 0:
            return self._answer(FenceResult.FAILED, _how(ended))
        match ended.out.strip().decode(errors="replace"):
            case "gone":
                return self._answer(FenceResult.DEAD)
            case "exists":
                return self._answer(FenceResult.NOT_DEAD, "the provider has the machine")
            case other:
                return self._answer(
                    FenceResult.FAILED, f"it printed {shown(other)!r}, neither {_GONE} nor {_EXISTS}"
                )


def _how(ended: Ended) -> str:
    assert ended.code is not None
    how = f"exit code {ended.code}" if ended.code >= 0 else f"ended by signal {-ended.code}"
    said = shown(ended.err) or shown(ended.out)
    return f"{how}: {said}" if said else how
