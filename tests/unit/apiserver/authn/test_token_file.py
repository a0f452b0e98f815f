from __future__ import annotations

from pathlib import Path

import pytest

from podlife.apiserver.authn import ADMIN, UserInfo, format_tokens, parse_tokens, read_token
from podlife.errors import ConfigError


def test_the_text_of_a_token_file_reads_back_as_it_was() -> None:
    users = [("t1", ADMIN), ("t2", UserInfo("b", "2", ("x", 'y"z'))), ("t3", UserInfo("c", "3"))]
    assert parse_tokens(format_tokens(users)) == users


def test_the_token_of_a_user_can_be_looked_up(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("secret,alice,1\nother,bob,2\n")
    assert read_token(tokens, "bob") == "other"
    with pytest.raises(ConfigError, match="has no token for nobody"):
        read_token(tokens, "nobody")


def test_a_token_file_with_a_field_beyond_all_bounds_is_refused_as_any_other_mistake() -> None:
    with pytest.raises(ValueError, match="field larger than field limit"):
        parse_tokens("x" * 200_000 + ",admin,uid\n")
