"""Parsing of request paths: only the canonical form is accepted."""

import pytest

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import request_info

CATALOG = ResourceCatalog()


@pytest.mark.parametrize(
    "path",
    ["/apis//v1/pods", "/api/v1//pods", "/api/v1/namespaces//pods", "//api/v1/pods", "/api/v1/pods//x"],
)
def test_a_path_with_a_gap_is_no_resource(path: str) -> None:
    assert request_info.parse(path, CATALOG) is None


@pytest.mark.parametrize(
    "path", ["/api/v1/../v1/pods", "/api/v1/namespaces/default/..;/secrets", "/api/v1/;/pods"]
)
def test_dots_and_semicolons_lead_nowhere(path: str) -> None:
    route = request_info.parse(path, CATALOG)
    assert route is None or route.resource is None


def test_a_slash_at_the_end_changes_nothing() -> None:
    assert request_info.parse("/api/v1/pods/", CATALOG) == request_info.parse("/api/v1/pods", CATALOG)


@pytest.mark.parametrize(
    ("path", "namespace", "name", "subresource"),
    [
        ("/api/v1/namespaces", "", "", ""),
        ("/api/v1/namespaces/a", "a", "a", ""),
        ("/api/v1/namespaces/a/status", "a", "a", "status"),
        ("/api/v1/namespaces/a/finalize", "a", "a", "finalize"),
    ],
)
def test_a_namespace_is_in_itself(path: str, namespace: str, name: str, subresource: str) -> None:
    info = request_info.parse(path, CATALOG)
    assert info is not None
    assert info.resource is not None
    assert (info.plural, info.namespace, info.name, info.subresource) == (
        "namespaces",
        namespace,
        name,
        subresource,
    )
