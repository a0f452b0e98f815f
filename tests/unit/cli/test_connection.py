"""kubectl's connection flags."""

from __future__ import annotations

import pytest

from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.client import TokenAuth
from podlife.errors import ConfigError


def test_flags_make_a_connection_without_any_file() -> None:
    options = ConnectionOptions(server="https://host:1", token="secret", request_as="eve")
    connection = load_connection(options)
    assert (connection.server, connection.auth) == ("https://host:1", TokenAuth("secret"))
    assert connection.impersonation == (("Impersonate-User", "eve"),)


def test_a_context_without_a_file_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="no context 'dev'"):
        load_connection(ConnectionOptions(context="dev"))
