"""Audit policy: which requests are recorded, and how much of them. Pure, except for `load_policy`.

A policy file is an `audit.k8s.io/v1` Policy. The first rule that matches a request decides; a request that no rule
matches is not recorded. Rules match as kube-apiserver's do. A field that kube-apiserver would ignore with a warning
is an error here: a misspelt rule must not silently record nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from podlife.api.names import check_dns_subdomain
from podlife.api.yaml_documents import yaml_to_json
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes
from podlife.errors import ConfigError

Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]

_API_VERSION = "audit.k8s.io/v1"
_MOST_BYTES = 1 << 20
_NAMED = re.compile(r"(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)")

DEFAULT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  # Requests without credentials could fill the log.
  - level: None
    userGroups: ["system:unauthenticated"]
  - level: None
    resources:
      - {group: "", resources: [events, "*/status"]}
      - {group: events.k8s.io}
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: apps, resources: ["*/status"]}
      - {group: batch, resources: ["*/status"]}
      - {group: authentication.k8s.io}
      - {group: authorization.k8s.io}
  # Who deleted my pod: with the options, which name the UID that was meant.
  - level: Request
    verbs: [delete, deletecollection]
  - level: Request
    resources:
      - {group: "", resources: [pods/eviction]}
  # Routine requests of controllers and nodes.
  - level: None
    users: ["system:kube-controller-manager", "system:kube-scheduler"]
  - level: None
    userGroups: ["system:nodes"]
  # Who tainted a node: with the taints.
  - level: Request
    verbs: [update, patch]
    resources:
      - {group: "", resources: [nodes]}
  - level: Metadata
"""


class Level(enum.IntEnum):
    """How much is recorded; each level includes the ones before it."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def title(self) -> str:
        return _TITLES[self]


_TITLES = ("None", "Metadata", "Request", "RequestResponse")


class _Resources(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class _Rule(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    level: Literal["None", "Metadata", "Request", "RequestResponse"]
    users: frozenset[str] = frozenset()
    user_groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[_Resources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool | None = None

    def matches(self, user: UserInfo | None, attributes: Attributes) -> bool:
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.user_groups and (user is None or self.user_groups.isdisjoint(user.groups)):
            return False
        if self.resources or self.namespaces:
            return bool(attributes.resource) and self._matches_resource(attributes)
        if self.non_resource_urls:
            return not attributes.resource and any(
                _matches_path(attributes.path, each) for each in self.non_resource_urls
            )
        return True

    def _matches_resource(self, attributes: Attributes) -> bool:
        if self.namespaces and attributes.namespace not in self.namespaces:
            return False
        return not self.resources or any(_selects(each, attributes) for each in self.resources)


class _PolicyFile(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    api_version: str
    kind: str
    metadata: dict[str, object] = {}
    rules: tuple[_Rule, ...] = ()
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True)
class RequestAuditConfig:
    """What is recorded of one request."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


_UNRECORDED = RequestAuditConfig(Level.NONE)


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    rules: tuple[tuple[_Rule, RequestAuditConfig], ...]
    # The user that rules match for an unauthenticated request; kube-apiserver matches only rules without users and
    # groups.
    stranger: UserInfo | None = None

    def config(self, user: UserInfo | None, attributes: Attributes) -> RequestAuditConfig:
        """`user` is None for an unauthenticated request."""
        sender = self.stranger if user is None else user
        for rule, config in self.rules:
            if rule.matches(sender, attributes):
                return config
        return _UNRECORDED


def name_of(attributes: Attributes) -> str:
    """A list or watch of one object by name counts as a request for it, as in kube-apiserver's request info."""
    if attributes.name or not attributes.field_selector or attributes.verb not in ("list", "watch"):
        return attributes.name
    found = _NAMED.search(attributes.field_selector)
    return found[1] if found is not None else ""


def _selects(wanted: _Resources, attributes: Attributes) -> bool:
    if wanted.group != attributes.group:
        return False
    if not wanted.resources:
        return True
    if wanted.resource_names and name_of(attributes) not in wanted.resource_names:
        return False
    return any(_matches_target(each, attributes) for each in wanted.resources)


def _matches_target(pattern: str, attributes: Attributes) -> bool:
    if pattern in ("*", attributes.target):
        return True
    resource, mark, subresource = pattern.partition("/")
    if not mark:
        return False
    # `pods/*` includes pods themselves, `*/status` only the subresource.
    if subresource == "*":
        return resource == attributes.resource
    return resource == "*" and subresource == attributes.subresource


def _matches_path(path: str, pattern: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def load_policy(path: Path) -> AuditPolicy:
    """Read a policy file; raises ConfigError with the file and the place."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"audit policy {path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"audit policy {path}: larger than {_MOST_BYTES} bytes")
    return read_policy(data, str(path))


def read_policy(data: bytes, name: str) -> AuditPolicy:
    """Parse a policy; raises ConfigError with the file and the place."""
    try:
        read = msgspec.json.decode(yaml_to_json(data), type=_PolicyFile)
    except ValueError as error:
        raise ConfigError(f"audit policy {name}: {_where(str(error))}") from None
    for problem in _problems(read):
        raise ConfigError(f"audit policy {name}: {problem}")
    return AuditPolicy(tuple((each, _config(each, read)) for each in read.rules))


def _where(message: str) -> str:
    """msgspec's `… - at `$.rules[0].level`` with the place in front."""
    problem, mark, place = message.rpartition(" - at ")
    place = place.strip("`").removeprefix("$").lstrip(".")
    if not mark:
        return message
    return f"{place}: {problem}" if place else problem


def _problems(read: _PolicyFile) -> Iterator[str]:
    if (read.api_version, read.kind) != (_API_VERSION, "Policy"):
        yield f"expected {_API_VERSION} Policy, not {read.api_version!r} {read.kind!r}"
    if not read.rules:
        yield "rules: at least one rule is required"
    for number, rule in enumerate(read.rules):
        yield from _problems_of(rule, f"rules[{number}]")


def _problems_of(rule: _Rule, place: str) -> Iterator[str]:
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        yield f"{place}.nonResourceURLs: a rule cannot have both nonResourceURLs and resources or namespaces"
    for number, url in enumerate(rule.non_resource_urls):
        if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
            yield f"{place}.nonResourceURLs[{number}]: invalid path {url!r}: expected /PATH, /PATH* or '*'"
    for number, wanted in enumerate(rule.resources):
        inside = f"{place}.resources[{number}]"
        if wanted.group and (problems := check_dns_subdomain(wanted.group)):
            yield f"{inside}.group: invalid API group {wanted.group!r} (without a version): {problems[0]}"
        if wanted.resource_names and not wanted.resources:
            yield f"{inside}.resourceNames: requires at least one resource"


def _config(rule: _Rule, policy: _PolicyFile) -> RequestAuditConfig:
    omits = rule.omit_managed_fields
    return RequestAuditConfig(
        Level(_TITLES.index(rule.level)),
        frozenset((*policy.omit_stages, *rule.omit_stages)),
        policy.omit_managed_fields if omits is None else omits,
    )
