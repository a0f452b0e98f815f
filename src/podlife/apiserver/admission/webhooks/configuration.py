"""Webhooks as the stored configurations describe them, in the order in which they are called.

`WebhookSource` follows the store: a configuration applies to every request that comes after the commit of its change.
It reads whatever the store holds: an older version may have been less strict.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from podlife.api.codec import Object, decode_object
from podlife.apiserver.storage import Record, Store

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_DEFAULT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Rule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str = "*"

    @classmethod
    def from_object(cls, rule: Object) -> Rule:
        split = (each.partition("/") for each in rule.get("resources") or ())
        return cls(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            tuple((resource, subresource) for resource, _, subresource in split),
            rule.get("scope") or "*",
        )


@dataclass(frozen=True, slots=True)
class ServiceReference:
    namespace: str
    name: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where a webhook is. `url` or `service` is set, never both."""

    url: str
    service: ServiceReference | None
    ca_bundle: bytes

    @classmethod
    def from_object(cls, config: Object) -> ClientConfig:
        bundle = _bytes(config.get("caBundle") or "")
        return cls(config.get("url") or "", _service(config.get("service")), bundle)


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration."""

    uid: str
    name: str
    configuration: str
    is_mutating: bool
    rules: tuple[Rule, ...]
    client_config: ClientConfig
    namespace_selector: Object
    object_selector: Object
    # Expressions; compiled where they are evaluated.
    conditions: tuple[str, ...]
    review_versions: tuple[str, ...]
    ignores_failure: bool
    matches_equivalent: bool
    timeout_seconds: int
    side_effects: str
    is_reinvoked: bool


class WebhookSource:
    """The webhooks of one kind of configuration."""

    def __init__(self, store: Store, resource: str) -> None:
        self._store = store
        self._resource = resource
        self._records: object = None
        self._webhooks: tuple[Webhook, ...] = ()

    def current(self) -> tuple[Webhook, ...]:
        if not self._store.count(self._resource):
            return ()
        # The store gives the same tuple until something changes.
        records = self._store.list(self._resource)
        if records is not self._records:
            self._webhooks = tuple(hook for record in records for hook in self._read(record))
            self._records = records
        return self._webhooks

    def _read(self, record: Record) -> Iterator[Webhook]:
        seen: Counter[str] = Counter()
        for hook in decode_object(record.value).get("webhooks") or ():
            name = hook.get("name", "")
            uid = f"{record.key.name}/{name}/{seen[name]}"
            seen[name] += 1
            yield self._webhook(uid, record.key.name, hook)

    def _webhook(self, uid: str, configuration: str, hook: Object) -> Webhook:
        return Webhook(
            uid=uid,
            name=hook.get("name", ""),
            configuration=configuration,
            is_mutating=self._resource == MUTATING,
            rules=tuple(map(Rule.from_object, hook.get("rules") or ())),
            client_config=ClientConfig.from_object(hook.get("clientConfig") or {}),
            namespace_selector=hook.get("namespaceSelector") or {},
            object_selector=hook.get("objectSelector") or {},
            conditions=tuple(each.get("expression", "") for each in hook.get("matchConditions") or ()),
            review_versions=tuple(hook.get("admissionReviewVersions") or ()),
            ignores_failure=hook.get("failurePolicy") == "Ignore",
            matches_equivalent=hook.get("matchPolicy") == "Equivalent",
            timeout_seconds=hook.get("timeoutSeconds") or _DEFAULT_SECONDS,
            side_effects=hook.get("sideEffects") or "",
            is_reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
        )


def _service(reference: Object | None) -> ServiceReference | None:
    if reference is None:
        return None
    port, path = reference.get("port") or 443, reference.get("path") or ""
    return ServiceReference(reference.get("namespace", ""), reference.get("name", ""), port, path)


def _bytes(text: str) -> bytes:
    """A bundle that is not base64 is kept as it is: no certificate can be read from it."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return text.encode()
