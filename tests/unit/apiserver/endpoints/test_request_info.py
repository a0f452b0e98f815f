"""What a path means: one way to write it, and no other."""

import pytest

from podlife.apiserver.endpoints import request_info as routes


@pytest.mark.parametrize(
    "path",
    ["/apis//v1/pods", "/api/v1//pods", "/api/v1/namespaces//pods", "//api/v1/pods", "/api/v1/pods//x"],
)
def test_a_path_with_a_gap_is_no_resource(path: str) -> None:
    assert routes.parse(path) is None


@pytest.mark.parametrize(
    "path", ["/api/v1/../v1/pods", "/api/v1/namespaces/default/..;/secrets", "/api/v1/;/pods"]
)
def test_dots_and_semicolons_lead_nowhere(path: str) -> None:
    route = routes.parse(path)
    assert route is None or route.resource is None


def test_a_slash_at_the_end_changes_nothing() -> None:
    assert routes.parse("/api/v1/pods/") == routes.parse("/api/v1/pods")
