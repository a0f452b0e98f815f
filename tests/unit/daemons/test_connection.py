"""What a server refuses, as a line that says what to do about it."""

from __future__ import annotations

import pytest

from podlife.client import Connection
from podlife.daemons.connection import explained
from podlife.errors import ApiError, ForbiddenError, TooManyRequestsError, UnauthorizedError

CONNECTION = Connection("https://host:6443", origin="context 'dev' in /home/me/.kube/config")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            'pods is forbidden: User "eve" cannot list resource "pods" in API group "" at the cluster scope',
            "user eve may not list pods in the whole cluster (403): grant the verb list on pods by a ClusterRole",
        ),
        (
            (
                'leases.coordination.k8s.io "x" is forbidden: User "system:serviceaccount:a:b" cannot update '
                'resource "leases" in API group "coordination.k8s.io" in the namespace "ns"'
            ),
            (
                "user system:serviceaccount:a:b may not update leases.coordination.k8s.io in namespace ns (403): "
                "grant the verb update on leases.coordination.k8s.io by a Role"
            ),
        ),
        (
            'User "eve" cannot list resource "namespaces" in API group "" at the cluster scope',
            (
                "user eve may not list namespaces in the whole cluster (403): grant the verb list on namespaces by a "
                "ClusterRole; deploy/gc/policy/rbac.yaml has all that is needed"
            ),
        ),
        (
            (
                'pods "p" is forbidden: User "eve" cannot patch resource "pods/status" in API group "" '
                'in the namespace "ns": RBAC: clusterrole "x" not found'
            ),
            "user eve may not patch pods/status in namespace ns (403): grant the verb patch on pods/status",
        ),
        ("a webhook said no", "the server forbids it (403): a webhook said no"),
    ],
)
def test_a_missing_right_names_the_verb_and_the_resource_and_where_to_grant_it(
    message: str, line: str
) -> None:
    assert str(explained(ForbiddenError(message), CONNECTION)).startswith(line)


def test_unknown_credentials_name_the_server_and_where_they_came_from() -> None:
    line = str(explained(UnauthorizedError("Unauthorized"), CONNECTION))
    assert "rejected the credentials (401 Unauthorized)" in line
    assert "https://host:6443" in line
    assert "/home/me/.kube/config" in line


def test_an_overloaded_server_is_called_that() -> None:
    assert "overloaded (429)" in str(explained(TooManyRequestsError("slow down"), CONNECTION))


def test_any_other_refusal_is_passed_on_with_its_code() -> None:
    line = str(explained(ApiError("etcd is away", code=500, reason="InternalError"), CONNECTION))
    assert line == "https://host:6443 answered 500 InternalError: etcd is away"
