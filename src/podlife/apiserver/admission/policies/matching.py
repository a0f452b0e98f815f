"""Whether a policy or a binding is about a request: pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from podlife.api.codec import Object
from podlife.api.labels import is_empty_selector, selector_matches
from podlife.apiserver.admission.policies.configuration import MatchResources, NamedRule
from podlife.apiserver.admission.webhooks.request import RequestTarget, ReviewedRequest
from podlife.apiserver.admission.webhooks.selection import matches_rule
from podlife.apiserver.resource import Resource

Equivalents = Callable[[Resource], Sequence[Resource]]


def may_match(match: MatchResources, target: RequestTarget, equivalents: Equivalents) -> bool:
    """Whether it can be about requests with this target, whatever their object and their name."""
    return not match.rules or _matched(match, match.rules, target, None, equivalents) is not None


def matched_resource(
    match: MatchResources,
    request: ReviewedRequest,
    equivalents: Equivalents,
    namespace_labels: Callable[[], Mapping[str, str]],
) -> Resource | None:
    """The resource that the request is shown as, or None if it is not meant."""
    target = request.target
    if not _selects_namespace(match.namespace_selector or {}, request, namespace_labels):
        return None
    if not _selects_object(match.object_selector or {}, request):
        return None
    if _matched(match, match.excluded, target, request.name, equivalents) is not None:
        return None
    if not match.rules:
        return target.resource
    return _matched(match, match.rules, target, request.name, equivalents)


def _matched(
    match: MatchResources,
    rules: Iterable[NamedRule],
    target: RequestTarget,
    name: str | None,
    equivalents: Equivalents,
) -> Resource | None:
    """The first resource that a rule is about; any name will do if it is None."""
    others = equivalents(target.resource) if match.matches_equivalent else ()
    for resource in (target.resource, *others):
        for named in rules:
            is_named = not named.names or name is None or name in named.names
            if is_named and matches_rule(named.rule, target, resource):
                return resource
    return None


def _selects_namespace(
    selector: Object, request: ReviewedRequest, namespace_labels: Callable[[], Mapping[str, str]]
) -> bool:
    target = request.target
    if is_empty_selector(selector) or not (request.namespace or target.is_namespace):
        return True
    if not target.is_namespace:
        return selector_matches(selector, namespace_labels())
    is_written = request.new is not None and not target.subresource
    return selector_matches(selector, _labels(request.new if is_written else request.old))


def _selects_object(selector: Object, request: ReviewedRequest) -> bool:
    if is_empty_selector(selector):
        return True
    shown = request.shown(request.target.resource)
    return any(
        obj is not None and "metadata" in obj and selector_matches(selector, _labels(obj)) for obj in shown
    )


def _labels(obj: Object | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}
