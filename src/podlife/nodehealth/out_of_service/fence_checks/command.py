"""Fence checks that are programs of the user's: one that confirms by its exit code, one that says whether a provider
has the machine at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from podlife.nodehealth.out_of_service.facts import Answer, Result
from podlife.nodehealth.out_of_service.fence_checks.check import Subject, shown
from podlife.nodehealth.out_of_service.fence_checks.program import MOST_OUTPUT, Ended, run_program

__all__ = ["CommandCheck", "ProviderGoneCheck"]

_GONE, _EXISTS = "gone", "exists"


class _Program:
    kind = "program"

    def __init__(self, argv: Sequence[str], *, seconds: float) -> None:
        self._argv = tuple(argv)
        self._seconds = seconds
        self.name = f"{self.kind} {PurePath(self._argv[0]).name}"

    def _answer(self, result: Result, text: str = "") -> Answer:
        return Answer(self.name, result, text)

    async def _run(self, subject: Subject, *arguments: str) -> Ended | Answer:
        """What it ended with; or why it says nothing."""
        if any(each.startswith("-") for each in arguments):
            # It would be an option to the program, chosen by the node.
            return self._answer(
                Result.FAILED, "what the node says of itself cannot be an argument: it begins with -"
            )
        try:
            ended = await run_program((*self._argv, *arguments), subject.environment, seconds=self._seconds)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            return self._answer(Result.FAILED, f"it cannot be run: {reason or error}")
        if ended.code is None:
            why = f", and printed more than {MOST_OUTPUT} bytes" if ended.is_full else ""
            return self._answer(Result.TIMEOUT, f"it did not end within {self._seconds:g} s{why}")
        return ended


class CommandCheck(_Program):
    """Exit code 0 confirms that the machine is dead. Its last four arguments are the node's name, UID, providerID and
    internal addresses (with commas), empty where there is none; the same stands in its environment."""

    kind = "command"

    async def ask(self, subject: Subject) -> Answer:
        ended = await self._run(subject, *subject.arguments)
        if isinstance(ended, Answer):
            return ended
        if ended.code == 0:
            return self._answer(Result.DEAD)
        return self._answer(Result.NOT_DEAD, _how(ended))


class ProviderGoneCheck(_Program):
    """The program's last argument is a providerID. It has to end with 0 and to print one word: `gone` if the provider
    has no such machine, `exists` if it has. The exit code alone says nothing: the programs of providers fail in the
    same way for a machine that is not there and for a network that is not."""

    kind = "provider-gone"

    async def ask(self, subject: Subject) -> Answer:
        if not subject.provider_id:
            return self._answer(Result.FAILED, "the node has no providerID")
        ended = await self._run(subject, subject.provider_id)
        if isinstance(ended, Answer):
            return ended
        if ended.code != 0:
            return self._answer(Result.FAILED, _how(ended))
        match ended.out.strip().decode(errors="replace"):
            case "gone":
                return self._answer(Result.DEAD)
            case "exists":
                return self._answer(Result.NOT_DEAD, "the provider has the machine")
            case other:
                return self._answer(
                    Result.FAILED, f"it printed {shown(other)!r}, neither {_GONE} nor {_EXISTS}"
                )


def _how(ended: Ended) -> str:
    assert ended.code is not None
    how = f"exit code {ended.code}" if ended.code >= 0 else f"ended by signal {-ended.code}"
    said = shown(ended.err) or shown(ended.out)
    return f"{how}: {said}" if said else how
