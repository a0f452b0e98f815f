"""Paths of resources."""

from __future__ import annotations

import pytest

from podlife.client import DEPLOYMENTS, NODES, PODS, Ref, refs
from tests.kit.real_parts import ROOT


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("ns"), "/api/v1/namespaces/ns/pods"),
        (PODS.path("ns", "a", "log"), "/api/v1/namespaces/ns/pods/a/log"),
        (NODES.path("", "n1", "status"), "/api/v1/nodes/n1/status"),
        (DEPLOYMENTS.path("ns", "d"), "/apis/apps/v1/namespaces/ns/deployments/d"),
    ],
)
def test_a_path_follows_from_the_resource(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("ref", "namespace", "name"),
    [(PODS, "", "a"), (NODES, "ns", "n1"), (PODS, "ns", ".."), (PODS, "a/b", ""), (PODS, "ns", "a%2f")],
)
def test_a_path_that_would_mean_something_else_is_refused(ref: Ref, namespace: str, name: str) -> None:
    with pytest.raises(ValueError):
        ref.path(namespace, name)


def test_every_resource_that_has_a_constant_is_on_the_page_of_the_client() -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    names = [name for name, value in vars(refs).items() if isinstance(value, refs.Ref)]
    assert [name for name in names if f"`{name}" not in page] == []
