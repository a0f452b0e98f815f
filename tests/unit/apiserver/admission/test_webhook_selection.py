"""Which requests a webhook is called for."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import encode
from podlife.apiserver.admission import Operation
from podlife.apiserver.admission.webhooks.configuration import MUTATING, Webhook, WebhookSource
from podlife.apiserver.admission.webhooks.request import RequestTarget
from podlife.apiserver.admission.webhooks.selection import concerned, selects
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, MemoryStore, Put

CATALOG = ResourceCatalog()
RULE: dict[str, Any] = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
    "scope": "*",
}


async def _put(store: MemoryStore, configuration: dict[str, Any]) -> None:
    key = Key(MUTATING, "", configuration["metadata"]["name"])
    await store.commit(Put(key, lambda _: encode(configuration), expected=0))


async def stored(*hooks: dict[str, Any], name: str = "test") -> tuple[Webhook, ...]:
    """The webhooks of a stored configuration."""
    store = MemoryStore()
    whole = [
        {"name": "a.example.com", "clientConfig": {"url": "https://x/"}, "rules": [RULE], **hook}
        for hook in hooks
    ]
    await _put(store, {"metadata": {"name": name}, "webhooks": whole})
    return WebhookSource(store, MUTATING).current()


def resource(key: str) -> Resource:
    plural, _, group = key.partition(".")
    found = CATALOG.find(group, "v1", plural)
    assert found is not None
    return found


def target(
    key: str = "pods", operation: str = "CREATE", subresource: str = "", namespace: str = "default"
) -> RequestTarget:
    return RequestTarget(Operation(operation), resource(key), subresource, namespace)


@pytest.mark.parametrize(
    ("rule", "asked", "is_called"),
    [
        ({}, target(), True),
        ({}, target(operation="UPDATE"), False),
        ({"operations": ["*"]}, target(operation="DELETE"), True),
        ({"operations": ["CONNECT"], "resources": ["pods/exec"]}, target("pods", "CONNECT", "exec"), True),
        ({}, target("configmaps"), False),
        ({}, target("deployments.apps"), False),
        ({"apiGroups": ["*"], "resources": ["*"]}, target("deployments.apps"), True),
        ({"apiGroups": ["apps"], "resources": ["deployments"]}, target("deployments.apps"), True),
        ({"apiVersions": ["v2"]}, target(), False),
        ({"apiVersions": ["*"]}, target(), True),
        # Subresources are named, or meant by an asterisk.
        ({}, target(subresource="binding"), False),
        ({"resources": ["pods/binding"]}, target(subresource="binding"), True),
        ({"resources": ["pods/*"]}, target(subresource="binding"), True),
        ({"resources": ["*/binding"]}, target(subresource="binding"), True),
        ({"resources": ["*/*"]}, target(), True),
        ({"resources": ["*"]}, target(subresource="binding"), False),
        ({"resources": ["pods/*"]}, target(), True),
        # A namespace is cluster-wide.
        ({"scope": "Namespaced"}, target(), True),
        ({"scope": "Cluster"}, target(), False),
        ({"scope": "Cluster", "resources": ["nodes"]}, target("nodes", namespace=""), True),
        ({"scope": "Namespaced", "resources": ["nodes"]}, target("nodes", namespace=""), False),
        ({"scope": "Cluster", "resources": ["namespaces"]}, target("namespaces", namespace=""), True),
        ({"scope": "Namespaced", "resources": ["namespaces"]}, target("namespaces", namespace=""), False),
    ],
)
async def test_rules(rule: dict[str, Any], asked: RequestTarget, is_called: bool) -> None:
    webhooks = await stored({"rules": [{**RULE, **rule}]})
    assert bool(list(concerned(webhooks, asked, CATALOG.equivalents, dict))) is is_called


@pytest.mark.parametrize(
    ("policy", "asked", "shown"),
    [
        ("Equivalent", "events", "events.events.k8s.io"),
        ("Exact", "events", ""),
        ("Exact", "events.events.k8s.io", "events.events.k8s.io"),
    ],
)
async def test_equivalent_resources_are_shown_as_the_rule_wants_them(
    policy: str, asked: str, shown: str
) -> None:
    rule = {**RULE, "apiGroups": ["events.k8s.io"], "resources": ["events"]}
    webhooks = await stored({"rules": [rule], "matchPolicy": policy})
    found = [each.resource.key for each in concerned(webhooks, target(asked), CATALOG.equivalents, dict)]
    assert found == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("selector", "labels", "is_called"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b"}, True),
        ({"matchLabels": {"a": "b"}}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": "b"}, False),
    ],
)
async def test_namespaces_are_selected_by_their_labels(
    selector: dict[str, Any], labels: dict[str, str], is_called: bool
) -> None:
    [webhook] = await stored({"namespaceSelector": selector})
    assert bool(list(concerned([webhook], target(), CATALOG.equivalents, lambda: labels))) is is_called
    # Objects outside of namespaces are never exempt.
    node = await stored({"namespaceSelector": selector, "rules": [{**RULE, "resources": ["nodes"]}]})
    assert list(concerned(node, target("nodes", namespace=""), CATALOG.equivalents, dict))
    # A namespace is selected by its own labels: the new ones if it is written, else those it has.
    labelled, plain = {"metadata": {"labels": labels}}, {"metadata": {"labels": {"other": "x"}}}
    assert selects(webhook, target("namespaces", namespace=""), labelled, None) is is_called
    assert selects(webhook, target("namespaces", "UPDATE", namespace=""), labelled, plain) is is_called
    assert selects(webhook, target("namespaces", "DELETE", namespace=""), None, labelled) is is_called
    assert (
        selects(webhook, target("namespaces", "UPDATE", "status", namespace=""), plain, labelled) is is_called
    )


@pytest.mark.parametrize(
    ("new", "old", "is_called"),
    [
        ({"a": "b"}, None, True),
        ({}, None, False),
        ({}, {"a": "b"}, True),
        (None, {"a": "b"}, True),
        (None, {}, False),
    ],
)
async def test_objects_are_selected_by_the_labels_they_have_or_had(
    new: dict[str, str] | None, old: dict[str, str] | None, is_called: bool
) -> None:
    [webhook] = await stored({"objectSelector": {"matchLabels": {"a": "b"}}})
    objects = [None if labels is None else {"metadata": {"labels": labels}} for labels in (new, old)]
    assert selects(webhook, target(), *objects) is is_called


async def test_an_object_without_metadata_is_only_selected_by_an_empty_selector() -> None:
    options = {"kind": "PodExecOptions", "apiVersion": "v1"}
    picky, easy = await stored(
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, {}
    )
    assert not selects(picky, target(), options, None)
    assert selects(easy, target(), options, None)


async def test_source_follows_the_store_and_sorts_by_the_names_of_configurations() -> None:
    store = MemoryStore()
    source = WebhookSource(store, MUTATING)
    assert source.current() == ()
    for name in ("b", "a"):
        hook = {"name": f"{name}.example.com", "clientConfig": {"url": "https://x/"}}
        await _put(store, {"metadata": {"name": name}, "webhooks": [hook, hook]})
    found = source.current()
    assert [each.uid for each in found] == [
        "a/a.example.com/0",
        "a/a.example.com/1",
        "b/b.example.com/0",
        "b/b.example.com/1",
    ]
    # Read once, until something changes.
    assert source.current() is found


def test_the_configurations_are_exempt() -> None:
    assert target("mutatingwebhookconfigurations.admissionregistration.k8s.io", namespace="").is_exempt
    assert not target().is_exempt
