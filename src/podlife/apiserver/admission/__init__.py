"""Admission: plug-ins that may change or reject a request after authorization, before anything is stored.

A plug-in is a function of the request and a reader of the store; it changes the object in place or raises. They run
in the order of upstream's recommended plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Record
from podlife.errors import ForbiddenError

__all__ = ["AdmissionChain", "AdmissionRequest", "Operation", "Plugin", "Reader"]

Reader = Callable[[Key], Record | None]


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request as admission sees it. `new` is absent in a delete, `old` in a create; `name` is empty if it will be
    generated later."""

    operation: Operation
    user: UserInfo
    resource: Resource
    namespace: str
    name: str
    subresource: str = ""
    new: Object | None = None
    old: Object | None = None
    # Of the request, as authorizers know it: `patch` for an update by a patch.
    verb: str = ""

    @property
    def shown_name(self) -> str:
        """Name of the object in a rejection: its own, or the prefix its name would be generated from."""
        metadata = (self.new or {}).get("metadata") or {}
        return self.name or str(metadata.get("generateName") or metadata.get("name") or "")

    def forbidden(self, reason: str, **details: Any) -> ForbiddenError:
        """The rejection of this request, in upstream's form."""
        name, resource = self.shown_name, self.resource
        subject = f'{resource.key} "{name}"' if name else resource.key
        details = {"name": name, "group": resource.group, "kind": resource.plural, **details}
        return ForbiddenError(
            f"{subject} is forbidden: {reason}",
            details={key: value for key, value in details.items() if value},
        )


Plugin = Callable[[AdmissionRequest, Reader], None]


class AdmissionChain:
    """The chain of plug-ins. The first one that raises ends the request. Those that only validate look at the object
    that is about to be stored."""

    def __init__(self, plugins: Sequence[Plugin], reader: Reader, validators: Sequence[Plugin] = ()) -> None:
        self._plugins = tuple(plugins)
        self._reader = reader
        self._validators = tuple(validators)

    def admit(self, attributes: AdmissionRequest) -> None:
        for plugin in self._plugins:
            plugin(attributes, self._reader)

    def validate(self, attributes: AdmissionRequest) -> None:
        for validator in self._validators:
            validator(attributes, self._reader)
