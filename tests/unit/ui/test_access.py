"""Who may use the page: tokens, cookies, hosts and origins."""

from __future__ import annotations

import pytest

from podlife.ui.access import Access, is_loopback

HERE = Access("127.0.0.1", 8480, token="t0ken")
HOST = {"Host": "127.0.0.1:8480"}
FOREIGN = (
    " 127.0.0.1 127.0.0.1:80 evil.example:8480 127.0.0.1.evil.example:8480 10.0.0.1:8480 [::1:8480 127.0.0.1:99999 "
    "127.0.0.1:8480@evil.example user@127.0.0.1:8480 127.0.0.1:8480/x"
)


def status_of(method: str = "GET", path: str = "/api/stream", access: Access = HERE, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    refusal = access.refusal_of(method, path, HOST | named)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["127.0.0.1:8480", "localhost:8480", "[::1]:8480"])
def test_the_addresses_of_loopback_are_its_own(host: str) -> None:
    assert status_of(Host=host) == 200


@pytest.mark.parametrize("host", FOREIGN.split(" "))
def test_other_names_are_refused(host: str) -> None:
    assert status_of(Host=host) == 421


def test_beyond_loopback_addresses_are_answered_and_foreign_names_are_not() -> None:
    wide = Access("0.0.0.0", 443, is_tls=True)
    assert status_of(access=wide, Host="10.0.0.1") == 200
    assert status_of(access=wide, Host="evil.example") == 421


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:8480", "http://127.0.0.1:9"]
)
def test_another_origin_is_refused(origin: str) -> None:
    assert status_of(Origin=origin) == 403
    assert status_of("POST", "/api/sweep", Origin=origin) == 403


def test_a_post_must_name_its_origin() -> None:
    assert status_of("POST", "/api/sweep") == 403
    assert status_of("POST", "/api/sweep", Origin="http://127.0.0.1:8480") == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_a_browser_calls_foreign_are_refused(site: str) -> None:
    assert status_of(Sec_Fetch_Site=site) == 403
    # A link from elsewhere may open the page.
    assert status_of(path="/", Sec_Fetch_Site=site) == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get"])
def test_other_methods_are_refused(method: str) -> None:
    assert status_of(method) == 405


def test_the_cookie_is_recognised_among_others_and_nothing_else_is() -> None:
    assert HERE.is_known({"Cookie": f"a=b; podlife-ui-8480={HERE.secret}"})
    for cookie in (
        "",
        "podlife-ui-8480=",
        "podlife-ui-8480=t0ken",
        f"podlife-ui-1={HERE.secret}",
        "\x00",
        "=" * 9000,
    ):
        assert not HERE.is_known({"Cookie": cookie})


def test_the_cookie_follows_from_the_token_and_does_not_tell_it() -> None:
    assert Access("h", 1, token="t0ken").secret == HERE.secret != Access("h", 1).secret
    assert "t0ken" not in HERE.cookie


def test_the_cookie_is_kept_from_scripts_and_other_sites() -> None:
    assert {"HttpOnly", "SameSite=Strict", f"Path={HERE.prefix}/"} <= set(HERE.cookie.split("; "))
    assert "Secure" not in HERE.cookie
    assert "Secure" in Access("h", 1, is_tls=True).cookie


def test_tokens_are_random_and_compared_whole() -> None:
    assert HERE.is_token("t0ken")
    assert not any(HERE.is_token(text) for text in ("", "t0ke", "t0ken ", "\udcff"))
    assert Access("h", 1).token != Access("h", 1).token
    assert len(Access("h", 1).token) >= 32


def test_the_address_to_open() -> None:
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("", "127.0.0.1")):
        assert Access(host, 8480, token="t").url == f"http://{shown}:8480/?token=t"


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "10.0.0.1", "evil.example")))
