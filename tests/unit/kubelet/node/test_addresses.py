"""Where a node is to be found."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.node import check_addresses, find_addresses


def test_this_machine_has_an_address() -> None:
    (found,) = find_addresses()
    assert not ip_address(found).is_unspecified


def test_a_machine_without_a_way_to_others_is_found_at_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("socket.socket", refuse)
    assert find_addresses() == ("127.0.0.1",)


def test_one_address_of_each_family_is_taken() -> None:
    assert check_addresses([" 192.0.2.7", "2001:DB8::7"]) == ("192.0.2.7", "2001:db8::7")
    assert check_addresses([]) == ()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["here"], "'here' is no IP address"),
        (["0.0.0.0"], "nobody's own address"),
        (["192.0.2.1", "192.0.2.2"], "one address of each family"),
    ],
)
def test_what_is_no_address_of_a_node_is_refused_in_one_line(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_addresses(texts)
