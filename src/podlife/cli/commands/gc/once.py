"""What one-off commands share: the prompt, an event recorder, and the archive step."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from podlife.aio import cancel_and_wait, spawn
from podlife.client import Client
from podlife.clock import SystemClock
from podlife.errors import ConfigError
from podlife.events import Recorder

if TYPE_CHECKING:
    from podlife.cli.archive_options import Archiving
    from podlife.podgc.archive import Archive, ArchiveStep


def prepare_to_ask(*, is_confirmed: bool) -> None:
    """Raises ConfigError without a terminal to ask on. Disables the log: the final report has all errors."""
    if not is_confirmed and not sys.stdin.isatty():
        raise ConfigError("confirmation needs a terminal: use --yes, or --dry-run to look first")
    logging.getLogger("podlife").addHandler(logging.NullHandler())


def is_agreed(question: str) -> bool:
    try:
        answer = input(f"\n{question} [y/N] ")
    except EOFError:
        print()
        return False
    except KeyboardInterrupt:
        # The next message starts on a new line.
        print()
        raise
    return answer.strip().lower() in ("y", "yes")


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[Recorder]:
    """An event recorder; failures to send events are ignored."""
    recorder = Recorder(client, "podlife-gc", clock=SystemClock())
    task = spawn(recorder.run(), name="events", on_failure=lambda _: None)
    try:
        yield recorder
    finally:
        await cancel_and_wait(task)


@asynccontextmanager
async def archiving_steps(
    client: Client, archiving: Archiving | None, archive: Archive | None
) -> AsyncIterator[Sequence[ArchiveStep]]:
    """The pre-delete steps; closes the archive on exit."""
    if archiving is None or archive is None:
        yield ()
        return
    step = archiving.step(client, archive, SystemClock())
    try:
        yield (step,)
    finally:
        await step.close()
