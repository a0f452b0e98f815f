"""Access, identity and token reviews, as `kubectl auth` sends them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podlife.apiserver.authn import ADMIN, Authenticator, TokenFile, UserInfo
from podlife.apiserver.authz import Authorizer, RbacPolicy
from podlife.apiserver.endpoints.reviews import (
    review_access,
    review_rules,
    review_self,
    review_subject_access,
    review_token,
)
from podlife.apiserver.storage import MemoryStore
from podlife.errors import ApiError, InvalidError

NODE = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
SOMEBODY = UserInfo("eve", "7", ("system:authenticated",))


class Unrelated:
    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        return False


AUTHORIZER = Authorizer(Unrelated(), RbacPolicy(MemoryStore()))


def review(**spec: Any) -> dict[str, Any]:
    return {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}


LIST_PODS = {"verb": "list", "resource": "pods", "namespace": "default"}


def test_may_i_is_answered_beside_the_question() -> None:
    answer = review_access(ADMIN, review(resourceAttributes=LIST_PODS), AUTHORIZER)
    assert answer == {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {"resourceAttributes": LIST_PODS},
        "status": {"allowed": True},
    }


def test_a_refusal_says_why() -> None:
    answer = review_access(NODE, review(resourceAttributes=LIST_PODS), AUTHORIZER)
    reason = "can only list/watch pods with spec.nodeName field selector"
    assert answer["status"] == {"allowed": False, "reason": reason}


@pytest.mark.parametrize(
    "selector",
    [
        {"rawSelector": "spec.nodeName=n1"},
        {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
    ],
)
def test_a_question_may_carry_a_field_selector(selector: dict[str, Any]) -> None:
    asked = review(resourceAttributes=LIST_PODS | {"fieldSelector": selector})
    assert review_access(NODE, asked, AUTHORIZER)["status"] == {"allowed": True}


def test_a_path_can_be_asked_for() -> None:
    asked = review(nonResourceAttributes={"verb": "get", "path": "/metrics"})
    assert review_access(SOMEBODY, asked, AUTHORIZER)["status"] == {"allowed": False}
    assert review_access(ADMIN, asked, AUTHORIZER)["status"] == {"allowed": True}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {},
            (
                "resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes "
                "must be specified"
            ),
        ),
        (
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            "nonResourceAttributes: Invalid value: {}: cannot be specified in combination with resourceAttributes",
        ),
    ],
)
def test_a_question_about_nothing_or_both_is_invalid(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        review_access(ADMIN, review(**spec), AUTHORIZER)
    assert (
        caught.value.message == f'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.{message}'
    )


def test_may_they_is_answered_for_the_one_who_is_named() -> None:
    asked = review(resourceAttributes=LIST_PODS, user="x", groups=["system:masters"])
    assert review_subject_access(asked, AUTHORIZER)["status"] == {"allowed": True}
    asked = review(resourceAttributes=LIST_PODS, user="x")
    assert review_subject_access(asked, AUTHORIZER)["status"] == {"allowed": False}
    with pytest.raises(InvalidError, match="at least one of user or group must be specified"):
        review_subject_access(review(resourceAttributes=LIST_PODS), AUTHORIZER)


def test_may_they_here_is_about_this_namespace_alone() -> None:
    asked = review(resourceAttributes=LIST_PODS, user="x")
    assert review_subject_access(asked, AUTHORIZER, namespace="default")["status"] == {"allowed": False}
    with pytest.raises(InvalidError, match=r"must match metadata\.namespace"):
        review_subject_access(asked, AUTHORIZER, namespace="other")
    path = review(nonResourceAttributes={"path": "/x"}, user="x")
    with pytest.raises(InvalidError, match="disallowed on this kind of request"):
        review_subject_access(path, AUTHORIZER, namespace="other")


def test_the_rules_of_an_admin_are_everything() -> None:
    answer = review_rules(ADMIN, review(namespace="default"), AUTHORIZER)
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert everything in answer["status"]["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in answer["status"]["nonResourceRules"]
    assert answer["status"]["incomplete"] is False


def test_the_rules_of_a_node_are_not_all_there_is() -> None:
    status = review_rules(NODE, review(namespace="default"), AUTHORIZER)["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == "node authorizer does not support user rule resolution"


def test_rules_are_asked_for_in_a_namespace() -> None:
    with pytest.raises(ApiError, match="no namespace on request") as caught:
        review_rules(ADMIN, review(), AUTHORIZER)
    assert caught.value.code == 400


def test_who_am_i() -> None:
    answer = review_self(SOMEBODY, datetime(2030, 1, 1, tzinfo=UTC))
    assert answer == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2030-01-01T00:00:00Z"},
        "status": {"userInfo": {"username": "eve", "uid": "7", "groups": ["system:authenticated"]}},
    }


def test_whose_token_is_this(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("secret,alice,1\n")
    authenticator = Authenticator(TokenFile(path))
    user = {"username": "alice", "uid": "1", "groups": ["system:authenticated"]}
    assert review_token(review(token="secret"), authenticator)["status"] == {
        "authenticated": True,
        "user": user,
    }
    wrong = review_token(review(token="wrong"), authenticator)["status"]
    assert wrong == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(ApiError, match="token is required"):
        review_token(review(), authenticator)
