"""Authentication by tokens and client certificates, and the token file."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.api import status
from podlife.apiserver.authn import (
    ADMIN,
    ANONYMOUS,
    Authenticator,
    TokenFile,
    UserInfo,
    format_tokens,
    parse_tokens,
    read_token,
)
from podlife.errors import ConfigError, UnauthorizedError
from podlife.wire import Peer, Request


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.csv"
    path.write_text('secret,alice,1,"devs,system:masters"\nother,bob,2\n')
    return path


@pytest.fixture
def authenticator(tokens: Path) -> Authenticator:
    return Authenticator(TokenFile(tokens))


def request(token: str | None = None, *, peer: Peer | None = None, path: str = "/api/v1/pods") -> Request:
    headers = {} if token is None else {"Authorization": token}
    return Request("GET", path, headers=headers, peer=peer)


def test_a_token_is_its_user_with_uid_groups_and_that_it_is_authenticated(
    authenticator: Authenticator,
) -> None:
    user = authenticator.authenticate(request("Bearer secret"))
    assert user == UserInfo("alice", "1", ("devs", "system:masters", "system:authenticated"))


def test_a_user_needs_no_groups(authenticator: Authenticator) -> None:
    assert authenticator.authenticate(request("bearer  other")).groups == ("system:authenticated",)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "secret",
        "Basic secret",
        "Bearer secret2",
        "Bearer \udcff",
    ],
)
def test_no_or_a_wrong_token_is_401_in_the_real_words(
    authenticator: Authenticator, header: str | None
) -> None:
    with pytest.raises(UnauthorizedError) as caught:
        authenticator.authenticate(request(header))
    assert status.failure(caught.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_certificate_is_its_subject(authenticator: Authenticator) -> None:
    user = authenticator.authenticate(request(peer=Peer("system:node:n1", ("system:nodes",))))
    assert user == UserInfo("system:node:n1", "", ("system:nodes", "system:authenticated"))
    assert user.node_name == "n1"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_anybody_may_ask_for_the_servers_health(authenticator: Authenticator, path: str) -> None:
    assert authenticator.authenticate(request(path=path)) is ANONYMOUS


@pytest.mark.parametrize("path", ["/", "/version", "/metrics", "/api", "/healthz/x", "/livezz"])
def test_nothing_else_is_anonymous(authenticator: Authenticator, path: str) -> None:
    with pytest.raises(UnauthorizedError):
        authenticator.authenticate(request(path=path))


def test_a_wrong_token_is_refused_even_where_none_is_needed(authenticator: Authenticator) -> None:
    with pytest.raises(UnauthorizedError):
        authenticator.authenticate(request("Bearer wrong", path="/healthz"))


def test_a_changed_file_counts_at_once(authenticator: Authenticator, tokens: Path) -> None:
    assert authenticator.authenticate(request("Bearer other")).name == "bob"
    tokens.write_text("fresh,carol,3\n")
    assert authenticator.authenticate(request("Bearer fresh")).name == "carol"
    with pytest.raises(UnauthorizedError):
        authenticator.authenticate(request("Bearer other"))


def test_a_removed_file_lets_nobody_in(authenticator: Authenticator, tokens: Path) -> None:
    tokens.unlink()
    with pytest.raises(UnauthorizedError):
        authenticator.authenticate(request("Bearer secret"))


def test_a_broken_file_keeps_those_who_were_in_it(
    authenticator: Authenticator, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authenticator.authenticate(request("Bearer secret"))
    tokens.write_text("half a line")
    assert authenticator.authenticate(request("Bearer secret")).name == "alice"
    assert "line 1 must have at least 3 columns" in caplog.text


@pytest.mark.parametrize(
    ("user", "node"),
    [
        (UserInfo("system:node:n1", groups=("system:nodes",)), "n1"),
        (UserInfo("system:node:n1"), ""),
        (UserInfo("n1", groups=("system:nodes",)), ""),
        (ADMIN, ""),
    ],
)
def test_a_node_is_told_by_its_name_and_its_group(user: UserInfo, node: str) -> None:
    assert user.node_name == node


def test_the_text_of_a_token_file_reads_back_as_it_was() -> None:
    users = [("t1", ADMIN), ("t2", UserInfo("b", "2", ("x", 'y"z'))), ("t3", UserInfo("c", "3"))]
    assert parse_tokens(format_tokens(users)) == users


def test_the_token_of_a_user_can_be_looked_up(tokens: Path) -> None:
    assert read_token(tokens, "bob") == "other"
    with pytest.raises(ConfigError, match="has no token for nobody"):
        read_token(tokens, "nobody")


def test_a_token_file_with_a_field_beyond_all_bounds_is_refused_as_any_other_mistake() -> None:
    with pytest.raises(ValueError, match="field larger than field limit"):
        parse_tokens("x" * 200_000 + ",admin,uid\n")
