"""Impersonation: only for permitted users, and with the impersonated user's rights only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

import pytest
from multidict import CIMultiDict

from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Authorizer, RbacPolicy, forbidden
from podlife.apiserver.endpoints.impersonation import act_as
from podlife.apiserver.storage import Key, MemoryStore
from podlife.errors import ApiError, ForbiddenError
from podlife.wire import Peer, Request, Response
from tests.kit import embedded

ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))
CONTROLLERS = UserInfo("system:kube-controller-manager", groups=("system:authenticated",))
NODE = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))


class NoPods:
    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        return False


async def check(user: UserInfo, asked: Attributes) -> None:
    decision = Authorizer(NoPods(), RbacPolicy(MemoryStore())).authorize(user, asked)
    if not decision.allowed:
        raise forbidden(user, asked, decision)


async def acting(user: UserInfo, headers: Mapping[str, str]) -> UserInfo:
    return await act_as(user, Request("GET", "/api/v1/pods", headers=headers), check)


async def test_without_the_headers_everybody_is_who_they_are() -> None:
    assert await acting(NODE, {"Accept": "x"}) is NODE


async def test_an_administrator_may_be_anybody() -> None:
    headers = CIMultiDict(
        [("impersonate-user", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
    )
    assert await acting(ADMIN, headers) == UserInfo("jane", "", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:anonymous", ("system:unauthenticated",)),
        (
            "system:serviceaccount:default:robot",
            ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"),
        ),
    ],
)
async def test_a_user_is_in_the_groups_of_its_kind(name: str, groups: tuple[str, ...]) -> None:
    assert (await acting(ADMIN, {"Impersonate-User": name})).groups == groups


@pytest.mark.parametrize("user", [CONTROLLERS, NODE])
async def test_nobody_else_may(user: UserInfo) -> None:
    with pytest.raises(ForbiddenError) as refused:
        await acting(user, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"})
    assert str(refused.value) == (
        f'users "admin" is forbidden: User "{user.name}" cannot impersonate resource "users" in API group "" '
        "at the cluster scope"
    )


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "impersonate-Extra-scopes"])
async def test_groups_without_a_user_are_a_mistake(header: str) -> None:
    with pytest.raises(ApiError) as refused:
        await acting(ADMIN, {header: "x"})
    assert refused.value.code == 400


async def test_a_request_on_behalf_of_somebody_has_their_rights_and_no_more() -> None:
    handler = await embedded.start()

    async def ask(method: str, path: str, body: object = None) -> Response:
        data = json.dumps(body).encode() if body is not None else b""
        headers = {"Impersonate-User": "jane"}
        peer = Peer("admin", ("system:masters",))
        return await handler(Request(method, path, headers=headers, body=data, peer=peer))

    assert (await ask("DELETE", "/api/v1/namespaces/default")).status == 403
    assert handler.registry.store.get(Key("namespaces", "", "default")) is not None
    review = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}}
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await ask("POST", reviews, review)
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["status"]["allowed"] is False


@pytest.mark.parametrize(
    "name", ["system:serviceaccount:t1:a:b", "system:serviceaccount:t1:", "system:serviceaccount:t1:\udcff"]
)
async def test_what_is_no_name_of_an_account_is_an_ordinary_user(name: str) -> None:
    asked: list[Attributes] = []

    async def noted(_: UserInfo, each: Attributes) -> None:
        asked.append(each)

    with contextlib.suppress(ApiError):
        await act_as(ADMIN, Request("GET", "/", headers={"Impersonate-User": name}), noted)
    assert asked == [Attributes("impersonate", resource="users", name=name)]


@pytest.mark.parametrize(
    ("peer", "code", "message"),
    [
        (
            Peer("eve"),
            403,
            r'users "\xff\xfe" is forbidden: User "eve" cannot impersonate resource "users" in API group ""',
        ),
        (
            Peer("admin", ("system:masters",)),
            400,
            "impersonation headers must be UTF-8, got '\\udcff\\udcfe'",
        ),
    ],
)
async def test_a_name_that_is_not_utf_8_is_refused(peer: Peer, code: int, message: str) -> None:
    handler = await embedded.start()
    headers = {"Impersonate-User": b"\xff\xfe".decode(errors="surrogateescape")}
    response = await handler(Request("GET", "/api/v1/pods", headers=headers, peer=peer))
    assert isinstance(response.body, bytes)
    answer = json.loads(response.body)
    assert (response.status, answer["message"].partition(" at the")[0]) == (code, message)
    assert answer.get("details", {}).get("name", "\ufffd\ufffd") == "\ufffd\ufffd"


async def test_extra_values_are_asked_about_one_by_one() -> None:
    asked: list[Attributes] = []

    async def noted(_: UserInfo, each: Attributes) -> None:
        asked.append(each)

    headers = CIMultiDict(
        [
            ("Impersonate-User", "jane"),
            ("Impersonate-Extra-example.com%2Fscopes", "view"),
            ("Impersonate-Extra-example.com%2Fscopes", "edit"),
        ]
    )
    await act_as(ADMIN, Request("GET", "/api/v1/pods", headers=headers), noted)
    assert [(each.target, each.name) for each in asked] == [
        ("users", "jane"),
        ("userextras/example.com/scopes", "view"),
        ("userextras/example.com/scopes", "edit"),
    ]
