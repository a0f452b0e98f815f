"""ClusterRoles that aggregate others: their rules are those of all ClusterRoles that their selectors match.

kube-controller-manager has this controller, too: both write the same rules under the same name. It follows the store's
events; whenever a ClusterRole changes, all that aggregate are computed again, the rules of each role in the order of
names, each rule once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from podlife.api.codec import Object, decode_object, encode
from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.apiserver.authn import AUTHENTICATED, UserInfo
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.apply import apply_object
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import CompactedError, Event, EventType, Record, StoreError
from podlife.errors import ApiError

log = logging.getLogger(__name__)

_ROW = next(row for row in STORED if row.key == "clusterroles.rbac.authorization.k8s.io")
_MANAGER = "clusterrole-aggregation-controller"
# Upstream's identity of the controller, which may escalate.
_USER = UserInfo(f"system:serviceaccount:kube-system:{_MANAGER}", groups=(AUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class AggregatedRole:
    """What matters of a ClusterRole. Without an aggregation rule it has no selectors."""

    labels: Mapping[str, str]
    rules: list[Object]
    selectors: tuple[LabelSelector, ...] | None

    @classmethod
    def from_object(cls, role: Object) -> AggregatedRole:
        aggregation = role.get("aggregationRule")
        selectors = None
        if aggregation is not None:
            found = aggregation.get("clusterRoleSelectors") or ()
            selectors = tuple(label_selector_from_dict(each) for each in found)
        return cls(role["metadata"].get("labels") or {}, role.get("rules") or [], selectors)


def aggregated_rules(name: str, roles: Mapping[str, AggregatedRole]) -> list[Object]:
    """Return the rules that a role aggregates."""
    rules: dict[bytes, Object] = {}
    for selector in roles[name].selectors or ():
        for other in sorted(roles):
            if other != name and selector.matches(roles[other].labels):
                rules |= {encode(rule): rule for rule in roles[other].rules}
    return list(rules.values())


class RoleAggregationController:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._roles: dict[str, AggregatedRole] = {}

    async def run(self) -> None:
        store = self._registry.store
        while True:
            subscription = store.subscribe(_ROW.key, since=store.revision)
            try:
                self._roles.clear()
                for record in store.list(_ROW.key):
                    self._remember(record)
                while True:
                    await self._aggregate()
                    for event in (await subscription.next()).events:
                        self._follow(event)
            except CompactedError:
                continue  # fell behind: read all again
            except StoreError:
                return
            finally:
                subscription.close()

    def _follow(self, event: Event) -> None:
        if event.type is EventType.DELETED:
            self._roles.pop(event.record.key.name, None)
        else:
            self._remember(event.record)

    def _remember(self, record: Record) -> None:
        self._roles[record.key.name] = AggregatedRole.from_object(decode_object(record.value))

    async def _aggregate(self) -> None:
        for name in [name for name, role in self._roles.items() if role.selectors is not None]:
            rules = aggregated_rules(name, self._roles)
            if rules == self._roles[name].rules:
                continue
            fields = {"rules": rules} if rules else {}
            try:
                await apply_object(self._registry, _ROW, name, _MANAGER, fields, _USER)
            except ApiError as error:
                log.warning("rules of ClusterRole %s not aggregated: %s", name, error)
