"""What kubectl asks about the server itself: versions, resources, fields and permissions."""

from __future__ import annotations

import json

import pytest

from tests.real.clients.conftest import StartPair
from tests.real.clients.pair import Pair


@pytest.fixture(scope="module")
def server(start_pair: StartPair) -> Pair:
    return start_pair()


@pytest.mark.parametrize(
    "what",
    [
        "pod",
        "pods.spec.containers",
        "pod.spec.containers.resources",
        "deployment.spec.strategy",
        "job.status",
        "node",
    ],
)
def test_explain_knows_the_fields(server: Pair, what: str) -> None:
    assert "DESCRIPTION" in server("explain", what).out


def test_explain_shows_the_whole_tree(server: Pair) -> None:
    assert "terminationGracePeriodSeconds" in server("explain", "pod", "--recursive").out
    server("explain", "deployment", "--recursive")
    server("explain", "pod.spec.nothing", code=1)
    server("explain", "rockets", code=1)


def test_every_resource_of_ours_is_one_of_kubernetes(server: Pair) -> None:
    ours = server.ours("api-resources", "-o", "wide", "--no-headers").out
    theirs = server.theirs("api-resources", "-o", "wide", "--no-headers").out
    rows = {" ".join(line.split()) for line in theirs.splitlines()}
    assert {" ".join(line.split()) for line in ours.splitlines()} <= rows
    assert len(ours.splitlines()) > 20


@pytest.mark.parametrize(
    "flags",
    [["--namespaced=true"], ["--api-group=apps"], ["--api-group=batch", "-o", "name"], ["--categories=all"]],
    ids=" ".join,
)
def test_resources_are_chosen_by_group_and_scope(server: Pair, flags: list[str]) -> None:
    said = server.ours("api-resources", *flags)
    assert "jobs" in said.out or "deployments" in said.out


def test_the_groups_we_serve_are_listed_in_the_real_order(server: Pair) -> None:
    ours = server.ours("api-versions").out.split()
    theirs = server.theirs("api-versions").out.split()
    assert ours == [version for version in theirs if version in ours]
    assert {"v1", "apps/v1", "batch/v1", "policy/v1", "coordination.k8s.io/v1", "events.k8s.io/v1"} <= set(
        ours
    )


def test_version_names_kubernetes_and_does_not_warn_of_a_gap(server: Pair) -> None:
    said = server.ours("version", "-o", "json")
    assert json.loads(said.out)["serverVersion"]["minor"] == "36"
    assert said.err == ""


@pytest.mark.parametrize(
    ("who", "question", "code"),
    [
        ("admin", ["create", "pods"], 0),
        ("admin", ["*", "*"], 0),
        ("admin", ["delete", "nodes"], 0),
        ("admin", ["get", "pods", "--subresource=log"], 0),
        ("admin", ["get", "/healthz"], 0),
        ("nobody", ["create", "pods"], 1),
        ("nobody", ["list", "secrets", "-A"], 1),
        ("nobody", ["get", "/version"], 0),
        ("node-a", ["delete", "nodes"], 1),
        ("node-a", ["create", "deployments"], 1),
        ("node-a", ["list", "nodes"], 1),
        ("node-a", ["create", "events"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_can_i_answers_for_who_asks(server: Pair, who: str, question: list[str], code: int) -> None:
    server("auth", "can-i", *question, who=who, code=code)


def test_can_i_lists_and_tells_who_one_is(server: Pair) -> None:
    assert "*.*" in server.ours("auth", "can-i", "--list").out
    for who in ("admin", "nobody", "node-a"):
        server("auth", "whoami", who=who)


def test_what_is_forbidden_is_said_in_the_real_words(server: Pair) -> None:
    for arguments in (
        ["get", "pods"],
        ["delete", "pod", "x"],
        ["create", "configmap", "x"],
        ["get", "nodes"],
    ):
        assert 'User "nobody" cannot' in server(*arguments, who="nobody", code=1).err


def test_raw_paths_are_answered(server: Pair) -> None:
    assert server("get", "--raw", "/healthz").out == "ok"
    assert server("get", "--raw", "/readyz").out == "ok"
    assert json.loads(server("get", "--raw", "/api").out)["versions"] == ["v1"]
    server("get", "--raw", "/api/v1/nothing", code=1)
    assert "apiserver_request_total" in server.ours("get", "--raw", "/metrics").out
    assert json.loads(server.ours("get", "--raw", "/openapi/v3").out)["paths"]


def test_cluster_info_names_the_server(server: Pair) -> None:
    assert "is running at" in server.ours("cluster-info").out
