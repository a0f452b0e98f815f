"""Which webhooks a request concerns: pure functions over rules, and selectors.

Rules and the selector of namespaces are known before the object is: `concerned` tells whether a request must leave the
fast path at all. `selects` decides about the object, which earlier webhooks may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.api.labels import is_empty_selector, selector_matches
from podlife.apiserver.admission.webhooks.configuration import Rule, Webhook
from podlife.apiserver.admission.webhooks.request import RequestTarget
from podlife.apiserver.resource import Resource


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook that a request concerns, and the resource it wants to see: another version, or another group."""

    webhook: Webhook
    resource: Resource


def concerned(
    webhooks: Iterable[Webhook],
    target: RequestTarget,
    equivalents: Callable[[Resource], Sequence[Resource]],
    namespace_labels: Callable[[], Mapping[str, str]],
) -> Iterator[Invocation]:
    """The webhooks whose rules and selector of namespaces match; that of a namespace itself is left to `selects`."""
    for webhook in webhooks:
        resource = _matching_resource(webhook, target, equivalents)
        if resource is None:
            continue
        selector = webhook.namespace_selector
        depends_on_labels = target.namespace and not target.is_namespace and not is_empty_selector(selector)
        if depends_on_labels and not selector_matches(selector, namespace_labels()):
            continue
        yield Invocation(webhook, resource)


def _matching_resource(
    webhook: Webhook, target: RequestTarget, equivalents: Callable[[Resource], Sequence[Resource]]
) -> Resource | None:
    if any(matches_rule(rule, target, target.resource) for rule in webhook.rules):
        return target.resource
    if not webhook.matches_equivalent:
        return None
    others = equivalents(target.resource)
    found = (other for rule in webhook.rules for other in others if matches_rule(rule, target, other))
    return next(found, None)


def matches_rule(rule: Rule, target: RequestTarget, resource: Resource) -> bool:
    return (
        _is_in(target.operation.value, rule.operations)
        and _is_in(resource.group, rule.groups)
        and _is_in(resource.version, rule.versions)
        and _is_in_scope(rule.scope, target)
        and any(
            plural in ("*", resource.plural) and subresource in ("*", target.subresource)
            for plural, subresource in rule.resources
        )
    )


def _is_in(value: str, values: frozenset[str]) -> bool:
    return value in values or "*" in values


def _is_in_scope(scope: str, target: RequestTarget) -> bool:
    is_cluster_wide = target.is_namespace or not target.namespace
    return scope == "*" or (scope == "Cluster") == is_cluster_wide


def selects(webhook: Webhook, target: RequestTarget, new: Object | None, old: Object | None) -> bool:
    """Whether the selectors match the objects, one of which may be absent."""
    if target.is_namespace:
        # A new or changed namespace is judged by its new labels, any other request by those it has.
        is_written = new is not None and not target.subresource
        if not selector_matches(webhook.namespace_selector, _labels(new if is_written else old or new)):
            return False
    selector = webhook.object_selector
    return is_empty_selector(selector) or any(
        obj is not None and "metadata" in obj and selector_matches(selector, _labels(obj))
        for obj in (new, old)
    )


def _labels(obj: Object | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}
