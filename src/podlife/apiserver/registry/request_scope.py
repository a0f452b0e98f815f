"""What a verb works with: the registry (for the server's lifetime) and the scope of one request."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, invalid, not_supported, required
from podlife.apiserver.admission import AdmissionChain, AdmissionRequest, Operation
from podlife.apiserver.admission.dynamic import Concern, DynamicAdmission
from podlife.apiserver.admission.webhooks import Call, RequestTarget
from podlife.apiserver.authn import MASTERS, UserInfo
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.registry.conversion import Conversions, converter_of
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Record, Store
from podlife.apiserver.strategies.object_meta import validate_manager
from podlife.apiserver.strategies.strategy import Strategy
from podlife.clock import Clock
from podlife.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from podlife.wire import Request


@dataclass(frozen=True, slots=True)
class Registry:
    """The parts every verb needs."""

    store: Store
    clock: Clock
    admission: AdmissionChain
    # Source of UIDs and generated names; a seeded one makes tests deterministic.
    chance: random.Random = field(default_factory=random.SystemRandom)
    catalog: ResourceCatalog = field(default_factory=ResourceCatalog)
    # New objects have managedFields. If not, an object has them from its first apply on.
    tracks_managers: bool = True
    # Policies and webhooks; None if this server has neither.
    dynamic_admission: DynamicAdmission | None = None
    # Sends reviews to webhooks; None if this server calls none.
    call_webhook: Call | None = None


@dataclass(slots=True)
class RequestScope:
    """One request, after authentication and routing."""

    registry: Registry
    request: Request
    user: UserInfo
    resource: Resource
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)
    # Keys that a map in a YAML body has twice.
    yaml_duplicates: list[str] = field(default_factory=list)
    # For the audit log.
    annotations: dict[str, str] = field(default_factory=dict)
    # Raises ForbiddenError unless the user may also do another verb: an apply can create.
    authorize: Callable[[str], Awaitable[None]] | None = None
    # Read once, on the event loop, to which some clocks belong.
    now: datetime = field(init=False)
    # Set if only a webhook can convert the resource to other versions.
    conversions: Conversions | None = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.registry.clock.now()
        converter = converter_of(self.resource)
        self.conversions = None if converter is None else Conversions(self.resource, converter)

    @property
    def strategy(self) -> Strategy:
        return self.resource.subresource_strategies.get(self.subresource, self.resource.strategy)

    @property
    def is_costly(self) -> bool:
        """Whether even a small object takes long to check: a worker thread does it."""
        strategy = self.strategy
        return strategy.is_costly or (strategy.is_costly_for_users and MASTERS not in self.user.groups)

    @property
    def key(self) -> Key:
        return self.key_of(self.namespace, self.name)

    def key_of(self, namespace: str, name: str) -> Key:
        return Key(self.resource.storage_key, namespace if self.resource.namespaced else "", name)

    def dry_run(self, options_kind: str, *, needs_manager: bool = False) -> bool:
        """Return whether this is a dry run; checks the options that all writing verbs share."""
        query = self.request.query
        errors: list[FieldError] = []
        manager = query.get("fieldManager")
        if needs_manager and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        errors += validate_manager("fieldManager", manager)
        if values := query.all("dryRun"):
            errors += [not_supported("dryRun", values, ["All"]) for value in values if value != "All"][:1]
        validation = query.get("fieldValidation")
        if validation not in ("", "Ignore", "Warn", "Strict"):
            supported = ["", "Ignore", "Strict", "Warn"]
            errors.append(not_supported("fieldValidation", validation, supported))
        if errors:
            raise invalid(options_kind, "meta.k8s.io", "", errors)
        return bool(values)

    def admission(
        self,
        operation: Operation,
        *,
        name: str | None = None,
        subresource: str = "",
        new: Object | None = None,
        old: Object | None = None,
    ) -> AdmissionRequest:
        name = self.name if name is None else name
        verb = "patch" if self.request.method == "PATCH" else operation.lower()
        return AdmissionRequest(
            operation, self.user, self.resource, self.namespace, name, subresource, new, old, verb
        )

    def admission_concern(self, operation: Operation, subresource: str = "") -> Concern | None:
        """The policies and webhooks that this request concerns; None, nearly always, if there are none."""
        dynamic = self.registry.dynamic_admission
        if dynamic is None or dynamic.is_idle:
            return None
        return dynamic.concern(RequestTarget(operation, self.resource, subresource, self.namespace))

    def details(self, name: str = "", **more: Any) -> Object:
        details = {"name": name or self.name, "group": self.resource.group}
        details |= {"kind": self.resource.plural, **more}
        return {key: value for key, value in details.items() if value}

    def not_found(self) -> ApiError:
        return NotFoundError(f'{self.resource.key} "{self.name}" not found', details=self.details())

    def already_exists(self, name: str, note: str = "") -> ApiError:
        message = f'{self.resource.key} "{name}" already exists{note}'
        return AlreadyExistsError(message, details=self.details(name))

    def conflict(self, why: str) -> ApiError:
        message = f'Operation cannot be fulfilled on {self.resource.key} "{self.name}": {why}'
        return ConflictError(message, details=self.details())

    def precondition_failed(self, what: str, meant: str, found: str, *, prefix: str = "") -> ApiError:
        return self.conflict(
            f"{prefix}Precondition failed: {what} in precondition: {meant}, {what} in object meta: {found}"
        )

    def find(self) -> Record:
        """Return the requested object as stored; raises NotFoundError."""
        record = self.registry.store.get(self.key)
        if record is None:
            raise self.not_found()
        return record
