"""One API request: admitted by the limiter, sent, decoded, retried where that is safe.

A call has one deadline that covers waiting, sending, reading and retries. An unsuccessful response is raised as the
typed error that its Status describes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from podlife.api.codec import decode_object
from podlife.api.status import from_status
from podlife.client.limiter import Limiter, Slot
from podlife.client.retry import is_trouble, retry_seconds
from podlife.client.transport import DeadlineError, Transport, TransportResponse, read_all
from podlife.errors import ApiError, PodlifeError, UnreachableError
from podlife.wire import Request

# More digits mean forever, and Python refuses to parse thousands of them.
_MOST_DIGITS = 9
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class WithdrawnError(PodlifeError):
    """The request was not sent, because its client was withdrawn while it waited."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete successful response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RestClient:
    def __init__(
        self,
        transport: Transport,
        limiter: Limiter,
        *,
        timeout_seconds: float,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.transport = transport
        self.limiter = limiter
        self.timeout_seconds = timeout_seconds
        self.on_warning = on_warning
        # Identifies the component of podlife that sends the requests.
        self.user_agent = ""
        self._received_at: float | None = None
        self._is_withdrawn = False
        # Calls that wait for a slot or for a retry.
        self._waits: set[asyncio.Timeout] = set()

    def note_life(self) -> None:
        """Data was received from the server."""
        self._received_at = asyncio.get_running_loop().time()

    @property
    def silent_seconds(self) -> float:
        """Time since data was received on any connection, or since the first request."""
        if self._received_at is None:
            self.note_life()
            return 0.0
        return asyncio.get_running_loop().time() - self._received_at

    def withdraw(self) -> None:
        """Send no more requests. Those in flight complete; waiting callers get WithdrawnError immediately."""
        self._is_withdrawn = True
        now = asyncio.get_running_loop().time()
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(now)

    async def call(self, request: Request) -> Reply:
        """Send the request, with retries, within the deadline. Raises ApiError or UnreachableError."""
        loop = asyncio.get_running_loop()
        await self.transport.prepare()
        if self.user_agent:
            request = self._named(request)
        deadline = loop.time() + self.timeout_seconds
        failures = 0
        while True:
            try:
                return await self._attempt(request, deadline)
            except (ApiError, UnreachableError) as error:
                failures += 1
                delay = retry_seconds(request.method, error, failures)
                if delay is None or loop.time() + delay >= deadline or self._is_withdrawn:
                    raise
            await self._pause(delay)

    async def open(self, request: Request) -> TransportResponse:
        """Open a stream, which has no overall deadline. One attempt; releases the slot once it has begun."""
        await self.transport.prepare()
        if self.user_agent:
            request = self._named(request)
        deadline = asyncio.get_running_loop().time() + self.timeout_seconds
        slot = await self._enter(deadline)
        try:
            answer = await self._send(request, slot, deadline, is_stream=True)
            if answer.status >= 300:
                await self._refuse(answer, slot, deadline)
            try:
                self._pass_on_warnings(answer.headers)
            except BaseException:
                await answer.close()
                raise
            return answer
        finally:
            self.limiter.leave(slot)

    def _named(self, request: Request) -> Request:
        return replace(request, headers={**request.headers, "User-Agent": self.user_agent})

    async def _attempt(self, request: Request, deadline: float) -> Reply:
        slot = await self._enter(deadline)
        try:
            answer = await self._send(request, slot, deadline, is_stream=False)
            if answer.status >= 300:
                await self._refuse(answer, slot, deadline)
            body = await self._read(answer, slot, deadline)
            self._pass_on_warnings(answer.headers)
            return Reply(answer.status, answer.headers, body)
        finally:
            self.limiter.leave(slot)

    async def _enter(self, deadline: float) -> Slot:
        if self._is_withdrawn:
            raise _withdrawn()
        if (slot := self.limiter.enter_at_once()) is not None:
            return slot
        return await self._wait_in_line(deadline)

    async def _wait_in_line(self, deadline: float) -> Slot:
        try:
            async with self._waiting(deadline):
                slot = await self.limiter.enter()
        except TimeoutError:
            if self._is_withdrawn:
                raise _withdrawn() from None
            raise DeadlineError(
                f"the request was held back for {self.timeout_seconds:g} s: the server is overloaded"
            ) from None
        if self._is_withdrawn:
            # Admitted and withdrawn at the same time.
            self.limiter.leave(slot)
            raise _withdrawn()
        return slot

    @asynccontextmanager
    async def _waiting(self, deadline: float | None) -> AsyncIterator[None]:
        """Raises TimeoutError at the deadline, and as soon as the client withdraws."""
        async with asyncio.timeout_at(deadline) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)

    async def _pause(self, seconds: float) -> None:
        try:
            async with self._waiting(None):
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise _withdrawn() from None

    async def _send(
        self, request: Request, slot: Slot, deadline: float, *, is_stream: bool
    ) -> TransportResponse:
        try:
            answer = await self.transport.send(request, seconds=_left(deadline), is_stream=is_stream)
        except UnreachableError as error:
            slot.report_trouble()
            raise self._with_timeout(error) from None
        slot.report_answer()
        self.note_life()
        return answer

    async def _read(self, answer: TransportResponse, slot: Slot, deadline: float) -> bytes:
        try:
            return await read_all(answer, seconds=_left(deadline))
        except UnreachableError as error:
            slot.report_trouble()
            raise self._with_timeout(error) from None

    def _with_timeout(self, error: UnreachableError) -> UnreachableError:
        """Deadline errors name the whole timeout: the time left for the last attempt differs from call to call, which
        would keep callers from grouping equal failures."""
        if isinstance(error, DeadlineError):
            return DeadlineError(f"{error} in {self.timeout_seconds:g} s")
        return error

    async def _refuse(self, answer: TransportResponse, slot: Slot, deadline: float) -> None:
        error = error_of(answer, await self._read(answer, slot, deadline))
        if is_trouble(error):
            asked = error.retry_after_seconds if error.code in (429, 503) else None
            slot.report_trouble(retry_after=float(asked or 0))
        raise error

    def _pass_on_warnings(self, headers: Mapping[str, str]) -> None:
        if self.on_warning is not None and "warning" in headers:
            for text in _WARNING.findall(headers["warning"]):
                self.on_warning(re.sub(r"\\(.)", r"\1", text))


def _withdrawn() -> WithdrawnError:
    return WithdrawnError("the request was withdrawn before it was sent")


def _left(deadline: float) -> float:
    return max(0.0, deadline - asyncio.get_running_loop().time())


def error_of(answer: TransportResponse, body: bytes) -> ApiError:
    """The typed error of a response; Retry-After is in its details."""
    try:
        error = from_status(decode_object(body), answer.status)
    except ValueError:
        error = from_status(None, answer.status)
    asked = answer.headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        error.details.setdefault("retryAfterSeconds", int(asked[:_MOST_DIGITS]))
    return error
