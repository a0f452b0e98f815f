"""What was read of a cluster for a diagnosis, and the rules of components that act on their own.

A mapping that is None was not read: nothing is concluded from what is missing in it. When a collector or an eviction
acts is decided by the code passed in as rules, so the explanation matches what that code will do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.api.codec import Object
from podlife.explain.audit_log import AuditedRequest
from podlife.explain.objects import condition, controller_of, items, metadata, moment, spec, text

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# A lease is renewed every ten seconds; after forty the node monitor does not believe in the node any more.
SILENT_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class CollectorRule:
    """The pod collector's decision about a pod: why, and in how many seconds from now at the latest."""

    reason: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PolicyHold:
    """Something that keeps a pod which is due: in words, until when at the latest or by itself, the command of a person
    that lifts it, and whether nobody but a person does."""

    why: str
    until: datetime | None = None
    lifted_by: str = ""
    is_for_a_person: bool = False


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """How a pod stands with the policy of podlife's collector.

    `rule` is the one that the pod has. `reason` and `due_at` are why and from when on it goes; without them nothing
    lets it go as things are."""

    rule: str = ""
    protected_by: str = ""
    excluded_by: str = ""
    reason: str = ""
    why: str = ""
    due_at: datetime | None = None
    # What keeps it although it is due: a guard, or that its owner has not seen the end.
    guard: PolicyHold | None = None
    owner: PolicyHold | None = None
    # Whether its rule waits for owners.
    waits_for_owner: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether the policy keeps it, though others would have it go."""
        is_excluded = bool(self.excluded_by) and not self.reason
        return bool(self.protected_by) or is_excluded or self.guard is not None or self.owner is not None


def _never(pod: Object, node: Object | None) -> CollectorRule | None:
    return None


def _no_policy(pod: Object) -> PolicyStatus | None:
    return None


def _not_at_all(pod: Object, node: Object) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class ActionRules:
    """`collect` decides about a pod whose node is this, or is not there; `bears` is how many seconds it bears the
    taints of its node: None is not at all, infinity for ever. `standing` is how a pod stands with a policy, where there
    is one."""

    collect: Callable[[Object, Object | None], CollectorRule | None] = _never
    bears: Callable[[Object, Object], float | None] = _not_at_all
    standing: Callable[[Object], PolicyStatus | None] = _no_policy


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    now: datetime
    rules: ActionRules = field(default_factory=ActionRules)
    nodes: Mapping[str, Object] | None = None
    leases: Mapping[str, Object] | None = None
    # By namespace and name.
    claims: Mapping[tuple[str, str], Object] | None = None
    budgets: Sequence[Object] = ()
    # Which volumes are attached where, read only for pods whose volume cannot be attached.
    attachments: Sequence[Object] = ()
    # By UID: they stand between a pod and its Deployment.
    replica_sets: Mapping[str, Object] = field(default_factory=dict)
    # By UID: those of pods that have ended.
    jobs: Mapping[str, Object] = field(default_factory=dict)
    # The events of an object, by its UID, the oldest first.
    events: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    # What a deleted pod went with, in words: its namespace, its owner. Read for one pod that nobody else explains.
    went_with: str = ""
    # Who last set the replicas of its workload, in words, from the fields' managers.
    replicas_set_by: str = ""
    # What an audit log tells of it, the oldest first.
    audited: Sequence[AuditedRequest] = ()
    # Other pods, where the question is who holds a place.
    pods: Sequence[Object] = ()
    # The nodes that are silent, where the caller has judged that; None to judge by the leases.
    silent: Container[str] | None = None
    unread: tuple[str, ...] = ()

    def node_of(self, pod: Object) -> Object | None:
        name = text(spec(pod), "nodeName")
        return (self.nodes or {}).get(name)

    def is_node_gone(self, pod: Object) -> bool:
        name = text(spec(pod), "nodeName")
        return bool(name) and self.nodes is not None and name not in self.nodes

    def heard_at(self, node: Object) -> datetime | None:
        """When its agent last renewed its lease."""
        lease = (self.leases or {}).get(text(metadata(node), "name"))
        return None if lease is None else moment(spec(lease).get("renewTime"))

    def is_silent(self, node: Object) -> bool:
        if self.silent is not None:
            return text(metadata(node), "name") in self.silent
        heard_at = self.heard_at(node)
        return heard_at is not None and (self.now - heard_at).total_seconds() > SILENT_SECONDS

    def events_of(self, obj: Object) -> Sequence[Object]:
        return self.events.get(text(metadata(obj), "uid"), ())

    def workload_of(self, pod: Object) -> tuple[str, str] | None:
        """Kind and name of what makes pods like this one; a ReplicaSet's Deployment rather than the ReplicaSet."""
        owner = controller_of(pod)
        if not owner:
            return None
        replica_set = self.replica_sets.get(text(owner, "uid"))
        owner = (controller_of(replica_set) if replica_set is not None else {}) or owner
        return text(owner, "kind"), text(owner, "name")

    def seconds_since(self, since: datetime | None) -> float:
        return 0.0 if since is None else (self.now - since).total_seconds()


def is_ready(node: Object) -> bool:
    return condition(node, "Ready").get("status") == "True"


def taints_of(node: Object, *effects: str) -> list[Object]:
    return [each for each in items(spec(node), "taints") if not effects or each.get("effect") in effects]


def is_out_of_service(node: Object) -> bool:
    return any(each.get("key") == OUT_OF_SERVICE for each in taints_of(node))
