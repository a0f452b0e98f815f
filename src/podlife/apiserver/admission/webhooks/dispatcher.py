"""Calls the webhooks that a request concerns.

Mutating webhooks are called one after the other in the order of their configurations' names; if one has changed the
object, the built-in plug-ins and the webhooks that ask for it run once more. Validating webhooks are called all at
once. A webhook may take half a minute and may itself write: no caller holds a lock meanwhile. Each call has a deadline,
and so have all calls of a request together.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podlife.api.codec import Object, decode_object, encode, has_too_many_values
from podlife.api.patch import PatchError, json_patch
from podlife.api.schema import go_kind
from podlife.apiserver.admission.webhooks.configuration import (
    MUTATING,
    VALIDATING,
    ClientConfig,
    Webhook,
    WebhookSource,
)
from podlife.apiserver.admission.webhooks.errors import CallError, denial, internal_error, out_of_time
from podlife.apiserver.admission.webhooks.request import RequestTarget, ReviewedRequest
from podlife.apiserver.admission.webhooks.review import (
    JSON_PATCH,
    InvalidAnswerError,
    Verdict,
    not_an_object,
    request_object,
    review_of,
    review_version,
    verdict_of,
)
from podlife.apiserver.admission.webhooks.selection import Invocation, concerned, selects
from podlife.apiserver.admission.webhooks.variables import Authorize, condition_variables
from podlife.apiserver.expressions import compile_condition, meets_conditions
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Store
from podlife.errors import ApiError, ForbiddenError

log = logging.getLogger(__name__)

_SAFE_IN_DRY_RUN = ("None", "NoneOnDryRun")

Call = Callable[[ClientConfig, bytes, float], Awaitable[bytes]]
"""Sends a review and returns the answer within so many seconds; raises CallError."""
Equivalents = Callable[[Resource], Sequence[Resource]]
"""Other resources that serve the same objects: other versions, or another group."""
Offload = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Concerned:
    """The webhooks that a request concerns, as far as that is known without its object."""

    target: RequestTarget
    mutating: tuple[Invocation, ...]
    validating: tuple[Invocation, ...]


@dataclass(slots=True)
class _Rounds:
    """Which webhooks are called a second time: those that asked for it and were called before a change."""

    is_needed: bool = False
    again: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)

    def note_change(self) -> None:
        self.again |= self.called
        self.called.clear()


class WebhookDispatcher:
    def __init__(
        self,
        store: Store,
        call: Call,
        offload: Offload,
        equivalents: Equivalents,
        authorize: Authorize,
    ) -> None:
        self._store = store
        self._call = call
        self._offload = offload
        self._equivalents = equivalents
        self._authorize = authorize
        self._mutating = WebhookSource(store, MUTATING)
        self._validating = WebhookSource(store, VALIDATING)

    def concerned(self, target: RequestTarget) -> Concerned | None:
        """None, nearly always, if no webhook needs to be called."""
        mutating, validating = self._mutating.current(), self._validating.current()
        if not (mutating or validating) or target.is_exempt:
            return None

        def labels() -> Mapping[str, str]:
            record = self._store.get(Key("namespaces", "", target.namespace))
            meta: Object = {} if record is None else decode_object(record.value)["metadata"]
            return meta.get("labels") or {}

        found = Concerned(
            target,
            tuple(concerned(mutating, target, self._equivalents, labels)),
            tuple(concerned(validating, target, self._equivalents, labels)),
        )
        return found if found.mutating or found.validating else None

    async def mutate(
        self,
        webhooks: Sequence[Invocation],
        request: ReviewedRequest,
        admit_again: Callable[[], Awaitable[None]],
        *,
        is_changed: bool = False,
    ) -> None:
        """Let the webhooks change `request.new`. If they have, or `is_changed` says that policies have, `admit_again`
        runs all that comes before them once more. Raises ApiError."""
        rounds = _Rounds(is_needed=is_changed)
        await self._round(webhooks, request, rounds, number=0)
        if not rounds.is_needed or request.new is None:
            return
        before = msgspec.to_builtins(request.new)
        await admit_again()
        if request.new != before:
            rounds.note_change()
        await self._round(webhooks, request, rounds, number=1)

    async def _round(
        self, webhooks: Sequence[Invocation], request: ReviewedRequest, rounds: _Rounds, *, number: int
    ) -> None:
        for index, invocation in enumerate(webhooks):
            webhook = invocation.webhook
            is_skipped = number and webhook.uid not in rounds.again
            if is_skipped or not await self._selects(invocation, request):
                continue
            place = f"mutation.webhook.admission.k8s.io/round_{number}_index_{index}"
            has_changed = False
            try:
                has_changed = await self._mutate_once(invocation, request)
            except CallError as error:
                _fail(webhook, error)
                request.annotations[f"failed-open.{place}"] = webhook.name
            finally:
                about = {"configuration": webhook.configuration, "webhook": webhook.name}
                request.annotations[place] = json.dumps(
                    about | {"mutated": has_changed}, separators=(",", ":")
                )
            if has_changed:
                rounds.note_change()
                rounds.is_needed = True
            if webhook.is_reinvoked:
                rounds.called.add(webhook.uid)

    async def _mutate_once(self, invocation: Invocation, request: ReviewedRequest) -> bool:
        """Return whether the webhook has changed the object."""
        verdict = await self._ask(invocation, request)
        if not verdict.patch:
            return False
        if verdict.patch_type != JSON_PATCH:
            raise CallError(f'unsupported patch type "{verdict.patch_type}"')
        before = request.new
        work = lambda: _patched(invocation, request, verdict.patch)  # noqa: E731
        request.new = await request.settle(lambda: self._offload(work, verdict.patch, encode(before)))
        return request.new != before

    async def validate(self, webhooks: Sequence[Invocation], request: ReviewedRequest) -> None:
        """Raise ApiError if one of the webhooks rejects the request."""
        chosen = [invocation for invocation in webhooks if await self._selects(invocation, request)]
        if len(chosen) == 1:
            await self._validate_once(0, chosen[0], request)
            return
        calls = (self._validate_once(index, each, request) for index, each in enumerate(chosen))
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _validate_once(self, index: int, invocation: Invocation, request: ReviewedRequest) -> None:
        try:
            await self._ask(invocation, request)
        except CallError as error:
            _fail(invocation.webhook, error)
            key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
            request.annotations[key] = invocation.webhook.name

    async def _selects(self, invocation: Invocation, request: ReviewedRequest) -> bool:
        webhook = invocation.webhook
        await request.prepare(invocation.resource)
        if not selects(webhook, request.target, *request.shown(invocation.resource)):
            return False
        if not webhook.conditions:
            return True

        def is_met() -> bool:
            names = condition_variables(request, invocation.resource, self._authorize)
            conditions = [compile_condition(source) for source in webhook.conditions]
            return meets_conditions(conditions, names, ignores_failure=webhook.ignores_failure)

        try:
            met: bool = await self._offload(is_met, is_costly=True)
        except ValueError as error:
            resource = request.target.resource
            details = {"name": request.name, "group": resource.group, "kind": resource.plural}
            raise ForbiddenError(
                f'{resource.key} "{request.name}" is forbidden: {error}',
                details={key: value for key, value in details.items() if value},
            ) from None
        return met

    async def _ask(self, invocation: Invocation, request: ReviewedRequest) -> Verdict:
        """Return the verdict of a webhook that allows the request; raises CallError, or ApiError if it does not."""
        webhook = invocation.webhook
        if request.is_dry_run and webhook.side_effects not in _SAFE_IN_DRY_RUN:
            text = f'admission webhook "{webhook.name}" does not support dry run'
            raise ApiError(text, code=400, reason="BadRequest")
        try:
            version = review_version(webhook.review_versions)
        except ValueError as error:
            raise CallError(f"could not create admission objects: {error}") from None
        left = request.deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise out_of_time()
        uid = str(uuid.uuid4())
        about = request_object(request, invocation.resource)
        body = review_of(about, *request.shown(invocation.resource), uid=uid, version=version)
        try:
            answer = await self._call(webhook.client_config, body, min(webhook.timeout_seconds, left))
            verdict: Verdict = await self._offload(
                lambda: verdict_of(answer, uid=uid, version=version, is_mutating=webhook.is_mutating), answer
            )
        except CallError as error:
            raise CallError(f"failed to call webhook: {error}") from None
        except InvalidAnswerError as error:
            raise CallError(f"received invalid webhook response: {error}") from None
        except ValueError as error:
            raise CallError(f"failed to call webhook: {error}") from None
        request.warnings.extend(verdict.warnings)
        request.annotations |= {f"{webhook.name}/{key}": text for key, text in verdict.annotations.items()}
        if not verdict.allowed:
            raise denial(webhook.name, verdict.status)
        return verdict


def _fail(webhook: Webhook, error: CallError) -> None:
    """Raise the failure of a call, unless the webhook's failures are ignored."""
    message = f'failed calling webhook "{webhook.name}": {error}'
    if not webhook.ignores_failure:
        raise internal_error(message)
    log.warning("%s (ignored)", message)


def _patched(invocation: Invocation, request: ReviewedRequest, patch: bytes) -> Object | None:
    """The object after the patch, checked and defaulted; raises CallError and ApiError."""
    try:
        operations = None if has_too_many_values(patch) else msgspec.json.decode(patch)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallError(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(operations, list):
        raise CallError("received undecodable patch in webhook response: not a list of operations")
    if not operations:
        return request.new
    if request.new is None:
        name = invocation.webhook.name
        text = f'admission webhook "{name}" attempted to modify the object, which is not supported for this operation'
        raise internal_error(text)
    view = request.views(invocation.resource)
    try:
        patched = json_patch(view.show(request.new), operations)
        if not isinstance(patched, dict):
            raise internal_error(not_an_object(go_kind(patched)))
        return view.take(patched, request.new, False)
    except PatchError as error:
        raise internal_error(error.cause or error.message) from None
    except RecursionError:
        raise internal_error("the object is nested too deeply after the patch") from None
    except ValueError as error:
        raise internal_error(str(error)) from None
