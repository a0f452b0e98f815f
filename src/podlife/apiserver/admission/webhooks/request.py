"""A request as webhooks are asked about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.admission import Operation
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.resource import Resource

_EXEMPT_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """What a request is about, as far as that is known without its object; `namespace` is empty for a namespace."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str

    @property
    def is_namespace(self) -> bool:
        return self.resource.key == "namespaces"

    @property
    def is_exempt(self) -> bool:
        """A configuration that rejects everything must not prevent its own removal."""
        return self.resource.group == _EXEMPT_GROUP


@dataclass(frozen=True, slots=True)
class View:
    """How webhooks see the objects of a request: whole, as clients do, in one version.

    `take` gets the patched object and the one that was shown, in the registry's form, and returns the result in that
    form, checked and defaulted. It raises ValueError if the patched object is not of its type; with a true third
    argument, unknown fields are an error, too.
    """

    api_version: str
    kind: str
    show: Callable[[Object], Object]
    take: Callable[[Object, Object, bool], Object]


Views = Callable[[Resource], View]


async def _once(work: Callable[[], Awaitable[Any]]) -> Any:
    return await work()


@dataclass(slots=True)
class ReviewedRequest:
    """A request with its objects in the registry's form; `new` is absent in a delete, `old` in a create.

    Webhooks change `new` and add to `warnings` and to `annotations`, those of the audit log.
    """

    target: RequestTarget
    user: UserInfo
    namespace: str
    name: str
    views: Views
    options: Object | None
    is_dry_run: bool
    # By the event loop's time: the end of all calls together.
    deadline: float
    new: Object | None = None
    old: Object | None = None
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    # Repeats work that shows or takes objects in other versions until all conversions that it needs have been made.
    settle: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]] = _once

    async def prepare(self, resource: Resource) -> None:
        """After this, the objects can be shown in the version of the resource; raises ApiError."""

        async def show() -> None:
            self.shown(resource)

        await self.settle(show)

    def shown(self, resource: Resource) -> tuple[Object | None, Object | None]:
        show = self.views(resource).show
        return (
            None if self.new is None else show(self.new),
            None if self.old is None else show(self.old),
        )
