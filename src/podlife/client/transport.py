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
    """The request never reached the server. `is_lasting`: a retry would fail too (a bad certificate)."""

    def __init__(self, message: str, *, is_lasting: bool = False) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


class DeadlineError(UnreachableError):
    """The server sent no response, or no more of it, within the caller's deadline."""


class SilenceError(DeadlineError):
    """The server stopped sending in the middle of a response."""


class TransportResponse(Protocol):
    """A server's response. Header names are in lower case; repeated headers are joined with a comma."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def next_piece(self, *, seconds: float | None) -> bytes:
        """The next chunk of the body, empty at its end. Raises SilenceError after `seconds` without data and
        UnreachableError if the body is cut off."""
        ...

    async def close(self) -> None:
        """Release the response; unread data is discarded."""
        ...


class Transport(Protocol):
    async def prepare(self) -> None:
        """Obtain credentials. Called before each request and outside its deadline, since the user may have to log in.
        Raises ConfigError."""
        ...

    async def send(
        self, request: Request, *, seconds: float | None, is_stream: bool = False
    ) -> TransportResponse:
        """Send the request and wait up to `seconds` for the response headers. Raises NotSentError, DeadlineError or
        another UnreachableError."""
        ...

    async def close(self) -> None: ...


async def read_all(answer: TransportResponse, *, seconds: float) -> bytes:
    """The whole body, within `seconds`. Closes the response in any case."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    pieces = []
    try:
        while piece := await answer.next_piece(seconds=deadline - loop.time()):
            pieces.append(piece)
            if loop.time() > deadline:
                # A server that keeps sending never triggers the read timeout.
                raise DeadlineError("")
    except DeadlineError:
        raise DeadlineError("the response was not complete") from None
    finally:
        await answer.close()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
