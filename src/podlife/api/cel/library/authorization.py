"""Authorization checks in policies: `authorizer.group('apps').resource('deployments').check('create').allowed()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import Meter


@dataclass(frozen=True, slots=True)
class Decision:
    """What the authorizer of the server answered; `error` is its text if it could not decide."""

    is_allowed: bool
    reason: str = ""
    error: str = ""

    type_name: ClassVar[str] = "kubernetes.authorization.Decision"
    has_unit_equality: ClassVar[bool] = True


Attributes = Mapping[str, str]
"""`verb` with `path`, or with group, resource, namespace, name and so on; `user` for a service account."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    """The value of the variable `authorizer`: decides about attributes."""

    decide: Callable[[Attributes], Decision]
    attributes: tuple[tuple[str, str], ...] = ()
    kind: str = "Authorizer"

    has_unit_equality: ClassVar[bool] = True

    @property
    def type_name(self) -> str:
        return f"kubernetes.authorization.{self.kind}"

    def plus(self, kind: str, **attributes: str) -> Authorizer:
        return replace(self, kind=kind, attributes=(*self.attributes, *attributes.items()))


def _with(kind: str, name: str, *, required: bool = False) -> Callable[..., Authorizer]:
    def function(_meter: Meter, check: Authorizer, value: str) -> Authorizer:
        if required and not value:
            raise EvaluationError(f"{name} must not be empty")
        return check.plus(kind, **{name: value})

    return function


def _service_account(_meter: Meter, check: Authorizer, namespace: str, name: str) -> Authorizer:
    for label, value in (("name", name), ("namespace", namespace)):
        if not value:
            raise EvaluationError(f"Invalid service account {label}")
    return check.plus("Authorizer", user=f"system:serviceaccount:{namespace}:{name}")


def _check(_meter: Meter, check: Authorizer, verb: str) -> Decision:
    return check.decide({**dict(check.attributes), "verb": verb})


_RESOURCE = "ResourceCheck"
AUTHORIZATION: dict[str, Callable[..., Any]] = {
    "path": _with("PathCheck", "path", required=True),
    "serviceAccount": _service_account,
    "group": _with("GroupCheck", "group"),
    "resource": _with(_RESOURCE, "resource", required=True),
    **{
        name: _with(_RESOURCE, name)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    },
    "check": _check,
    "allowed": lambda _meter, decision: decision.is_allowed,
    "reason": lambda _meter, decision: decision.reason,
    "error": lambda _meter, decision: decision.error,
    "errored": lambda _meter, decision: bool(decision.error),
}
