"""Follows a request through the handler and hands its stages to a backend.

The cost on the path of a request is small: the policy is evaluated once, and each stage appends references to a queue.
Nothing here raises, so the log never changes the outcome of a request.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from podlife.apiserver.audit.event import (
    COMPLETE,
    MOST_OBJECT_BYTES,
    PANIC,
    RECEIVED,
    STARTED,
    AuditedRequest,
    AuditedResponse,
    AuditEntry,
)
from podlife.apiserver.audit.policy import AuditPolicy, Level
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Decision
from podlife.clock import Clock
from podlife.errors import UnauthorizedError
from podlife.wire import Body, Channel, Request, Response, Upgrade

_HEADER = "Audit-Id"
_MOST_ID = 256
_LONG_RUNNING = frozenset({"log", "exec", "attach", "portforward", "proxy"})
# The first bytes of every encoded Status.
_STATUS = b'{"kind":"Status"'
# Approximate size of an entry beside its bodies.
_ENTRY_BYTES = 2048


@dataclass(frozen=True, slots=True)
class Auditor:
    """Applies the policy, and sends entries to `sink`, which must not block."""

    policy: AuditPolicy
    sink: Callable[[AuditEntry], None]
    clock: Clock

    def identified(
        self, request: Request, attributes: Attributes, authenticate: Callable[[Request], UserInfo]
    ) -> UserInfo:
        """Authenticate a request that the handler will not see if that fails: its rejection is recorded here."""
        try:
            return authenticate(request)
        except UnauthorizedError:
            context = AuditContext(self, request)
            context.received(None, attributes)
            context.answered(Response(401))
            raise


class AuditContext:
    """One request. `received` comes first; without it nothing else is recorded."""

    __slots__ = ("_answer", "_auditor", "_id", "_request", "_subject")

    def __init__(self, auditor: Auditor, request: Request) -> None:
        self._auditor = auditor
        self._request = request
        self._subject: AuditedRequest | None = None
        self._answer: AuditedResponse | None = None
        given = request.headers.get(_HEADER) or request.headers.get("Audit-ID") or ""
        is_usable = given and len(given) <= _MOST_ID and given.isprintable()
        self._id = given if is_usable else _new_id()

    def received(self, user: UserInfo | None, attributes: Attributes) -> None:
        """`user` is the sender, None if unknown."""
        auditor = self._auditor
        config = auditor.policy.config(user, attributes)
        if config.level is Level.NONE:
            return
        now = auditor.clock.now()
        self._subject = AuditedRequest(self._id, self._request, now, config, user, attributes)
        # Upstream does not record this stage of an unauthenticated request.
        if user is not None:
            self._send(RECEIVED)

    def impersonated(self, user: UserInfo) -> None:
        if self._subject is not None:
            self._subject.impersonated = user

    def decided(self, decision: Decision) -> None:
        if self._subject is not None:
            self._subject.annotations = {
                "authorization.k8s.io/decision": "allow" if decision.allowed else "forbid",
                "authorization.k8s.io/reason": decision.reason,
            }

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Add what admission has found out."""
        if self._subject is not None and annotations:
            self._subject.annotations = {**(self._subject.annotations or {}), **annotations}

    def read(self, request: Request) -> None:
        """Record the accepted body: JSON or protobuf."""
        subject = self._subject
        if subject is not None and request.body:
            level = subject.config.level
            if level >= Level.REQUEST or subject.attributes.verb in ("create", "update"):
                subject.body = request

    def failed(self) -> None:
        """Record an internal error; the response that follows contains no details."""
        if self._subject is not None:
            self._answer = AuditedResponse(500, status={"status": "Failure", "reason": "InternalError"})
            self._send(PANIC)
            self._subject = None

    def abandoned(self) -> None:
        """The request was cancelled before it had a response; it may have taken effect."""
        if self._subject is not None:
            self._answer = AuditedResponse(0, status={"message": "the request was cancelled"})
            self._send(COMPLETE)

    def answered(self, response: Response) -> Response:
        """Return the response to send: with the audit ID; a stream is followed until it ends."""
        headers = response.headers
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        response.headers = [*pairs, (_HEADER, self._id)]
        subject = self._subject
        if subject is None:
            return response
        body = response.body
        if subject.user is None:
            self._answer = self._recorded(response, body)
            self._send(STARTED)
        elif response.upgrade is not None:
            self._answer = AuditedResponse(101)
            self._send(STARTED)
            response.upgrade = Upgrade(response.upgrade.protocols, self._relayed(response.upgrade))
        elif isinstance(body, AsyncIterator):
            self._answer = AuditedResponse(response.status)
            is_long = subject.attributes.verb == "watch" or subject.attributes.subresource in _LONG_RUNNING
            if is_long:
                self._send(STARTED)
            is_kept = not is_long and subject.config.level >= Level.REQUEST_RESPONSE
            response.body = _Followed(body, partial(self._ended, response), is_kept=is_kept)
        else:
            self._answer = self._recorded(response, body)
            self._send(COMPLETE)
        return response

    def _recorded(self, response: Response, body: Body) -> AuditedResponse:
        """Keep as much of the body as is recorded: whole objects at the highest level, else only a Status."""
        assert self._subject is not None
        assert not isinstance(body, AsyncIterator)
        if self._subject.config.level >= Level.REQUEST_RESPONSE:
            return AuditedResponse(response.status, response.content_type, _bounded(body))
        is_status = isinstance(body, bytes) and body.startswith(_STATUS)
        return AuditedResponse(response.status, response.content_type, body if is_status else b"")

    def _ended(self, response: Response, kept: Sequence[bytes]) -> None:
        self._answer = AuditedResponse(response.status, response.content_type, kept)
        self._send(COMPLETE)

    def _relayed(self, upgrade: Upgrade) -> Callable[[Channel], Awaitable[None]]:
        async def relay(channel: Channel) -> None:
            try:
                await upgrade.relay(channel)
            finally:
                self._send(COMPLETE)

        return relay

    def _send(self, stage: str) -> None:
        subject = self._subject
        assert subject is not None
        if stage in subject.config.omit_stages:
            return
        now = subject.received_at if stage == RECEIVED else self._auditor.clock.now()
        request = subject.request
        # An entry keeps its request, so the request line and headers count too.
        size = _ENTRY_BYTES + len(request.path) + len(request.query.raw)
        size += sum(len(name) + len(value) for name, value in request.headers.items())
        if stage != RECEIVED:
            size += _size(subject.body.body) if subject.body is not None else 0
            size += _size(self._answer.body) if self._answer is not None else 0
        self._auditor.sink(AuditEntry(subject, stage, now, self._answer, size))


class _Followed:
    """A streamed body that reports its end exactly once: exhausted, failed, or closed, even before anything was read.
    With `is_kept` the report includes the data, as far as it is recorded."""

    def __init__(
        self, body: AsyncIterator[bytes], on_end: Callable[[Sequence[bytes]], None], *, is_kept: bool
    ) -> None:
        self._body = body
        self._on_end: Callable[[Sequence[bytes]], None] | None = on_end
        self._is_kept = is_kept
        self._kept: list[bytes] = []
        self._size = 0

    def __aiter__(self) -> _Followed:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await anext(self._body)
        except BaseException:
            self._end()
            raise
        if self._is_kept and self._size <= MOST_OBJECT_BYTES:
            self._kept.append(piece)
            self._size += len(piece)
        return piece

    async def aclose(self) -> None:
        try:
            close = getattr(self._body, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._end()

    def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self._kept)


def _new_id() -> str:
    """A random UUID at a third of the cost of `uuid.uuid4`: one is made for every request, and it is not a secret."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _bounded(body: bytes | Sequence[bytes]) -> bytes | Sequence[bytes]:
    """Enough of a body to detect that it is too large to be recorded; the rest is not kept in memory."""
    if isinstance(body, bytes):
        return body
    size = 0
    for number, piece in enumerate(body):
        size += len(piece)
        if size > MOST_OBJECT_BYTES:
            return body[: number + 1]
    return body


def _size(body: Body) -> int:
    if isinstance(body, bytes):
        return len(body)
    return sum(map(len, cast("Sequence[bytes]", body)))
