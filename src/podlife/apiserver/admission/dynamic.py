"""Admission that users configure: policies, then webhooks, as upstream orders them, after the built-in plug-ins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.admission.policies import Policy, PolicyDispatcher
from podlife.apiserver.admission.policies import configuration as policies
from podlife.apiserver.admission.webhooks import (
    Concerned,
    RequestTarget,
    ReviewedRequest,
    WebhookDispatcher,
)
from podlife.apiserver.admission.webhooks import configuration as webhooks

# A policy without a binding does nothing, and the reverse.
_RESOURCES = (
    *(webhooks.MUTATING, webhooks.VALIDATING),
    *(policies.MUTATING_BINDINGS, policies.VALIDATING_BINDINGS),
)


@dataclass(frozen=True, slots=True)
class Concern:
    """The policies and webhooks that a request concerns, as far as that is known without its object."""

    target: RequestTarget
    policies: tuple[Policy, ...]
    webhooks: Concerned | None


@dataclass(frozen=True, slots=True)
class DynamicAdmission:
    # Tells how many objects of a resource there are.
    count: Callable[[str], int]
    webhooks: WebhookDispatcher
    policies: PolicyDispatcher
    # Expressions may be expensive: they are evaluated off the event loop.
    run_in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]

    @property
    def is_idle(self) -> bool:
        """Whether there are neither policies nor webhooks: asked by every write."""
        return not any(map(self.count, _RESOURCES))

    def concern(self, target: RequestTarget) -> Concern | None:
        """None, nearly always, if the request concerns neither a policy nor a webhook."""
        if self.is_idle or target.is_exempt:
            return None
        policies, webhooks = self.policies.concerned(target), self.webhooks.concerned(target)
        return Concern(target, policies, webhooks) if policies or webhooks else None

    async def mutate(
        self, concern: Concern, request: ReviewedRequest, admit_again: Callable[[Object], Awaitable[None]]
    ) -> None:
        """Let policies and webhooks change `request.new`; `admit_again` runs the plug-ins on what they made of it."""
        policies, webhooks = concern.policies, concern.webhooks
        invoked: frozenset[object] = frozenset()
        if any(policy.is_mutating for policy in policies):
            invoked = await self._run(request, lambda: self.policies.mutate(policies, request))

        async def all_again() -> None:
            if request.new is not None:
                await admit_again(request.new)
            if invoked:
                await self._run(request, lambda: self.policies.mutate(policies, request, invoked))

        mutating = webhooks.mutating if webhooks is not None else ()
        await self.webhooks.mutate(mutating, request, all_again, is_changed=bool(invoked))

    async def validate(self, concern: Concern, request: ReviewedRequest) -> None:
        """Raise ApiError if a policy or a webhook rejects the request."""
        if not all(policy.is_mutating for policy in concern.policies):
            await self._run(request, lambda: self.policies.validate(concern.policies, request))
        if concern.webhooks is not None:
            await self.webhooks.validate(concern.webhooks.validating, request)

    async def _run(self, request: ReviewedRequest, work: Callable[[], Any]) -> Any:
        before = request.new

        async def attempt() -> Any:
            request.new = before
            return await self.run_in_thread(work)

        return await request.settle(attempt)
