"""Interface between the verbs and what carries requests to an API server.

A transport sends one `wire.Request` and returns a response once status and headers have arrived; the body is read in
chunks, each with a deadline, or as a whole. It distinguishes a request that was certainly not sent (`NotSentError`)
from one that may have been executed (any other `UnreachableError`). The meaning of the status is left to the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from podlife import __version__
from podlife.errors import UnreachableError
from podlife.wire import Request

USER_AGENT = f"podlife/{__version__}"


class NotSentError(UnreachableError):
    """The request never reached the server. `is_lasting`: nor would it a moment later (a bad certificate)."""

    def __init__(self, message: str, *, is_lasting: bool = False) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


class DeadlineError(UnreachableError):
    """The server did not answer, or went silent within an answer, for longer than the caller allows."""


class SilenceError(DeadlineError):
    """The server had begun its answer when it went silent."""


class TransportResponse(Protocol):
    """What a server answers. Header names are in lower case; a header sent twice is joined with a comma."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def next_piece(self, *, seconds: float | None) -> bytes:
        """The next piece of the body, empty at its end. Raises SilenceError after `seconds` of silence and
        UnreachableError when the body is cut off."""
        ...

    async def close(self) -> None:
        """Release the response; unread data is discarded."""
        ...


class Transport(Protocol):
    async def prepare(self) -> None:
        """Have credentials at hand. Called before each request and outside its deadline, since the user may have to log
        in; raises ConfigError when that fails."""
        ...

    async def send(
        self, request: Request, *, seconds: float | None, is_stream: bool = False
    ) -> TransportResponse:
        """Send the request and wait no longer than `seconds` for the headers of the answer. Raises
        NotSentError, DeadlineError or another UnreachableError."""
        ...

    async def close(self) -> None: ...


async def read_all(answer: TransportResponse, *, seconds: float) -> bytes:
    """The whole body within `seconds`; the answer is closed then, however it ended."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    pieces = []
    try:
        while piece := await answer.next_piece(seconds=deadline - loop.time()):
            pieces.append(piece)
            if loop.time() > deadline:
                # A server that always has more to say is never silent.
                raise DeadlineError("")
    except DeadlineError:
        raise DeadlineError("the answer was not complete") from None
    finally:
        await answer.close()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
