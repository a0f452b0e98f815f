"""Static token file, in kube-apiserver's format (`token,user,uid,"group,group"`).

The file is read again when it changes, and a removed token stops working at once.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from podlife.apiserver.authn.user import UserInfo
from podlife.errors import ConfigError

log = logging.getLogger(__name__)


class TokenFile:
    """Users of a token file, kept up to date with its content."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._users: Mapping[bytes, UserInfo] = {}

    def find(self, token: str) -> UserInfo | None:
        self._refresh()
        # Tokens are looked up by digest, so lookup time reveals nothing about existing tokens.
        return self._users.get(_digest(token))

    def _refresh(self) -> None:
        try:
            stat = self._path.stat()
        except OSError:
            self._users, self._seen = {}, None
            return
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._users = _parse(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            # A half-edited file must not lock everyone out: keep the tokens read before.
            log.error("cannot read the tokens in %s: %s", self._path, error)


def format_tokens(users: Iterable[tuple[str, UserInfo]]) -> str:
    """Format users as the text of a token file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for token, user in users:
        writer.writerow([token, user.name, user.uid, ",".join(user.groups)])
    return text.getvalue()


def parse_tokens(text: str) -> list[tuple[str, UserInfo]]:
    """Parse the text of a token file; raises ValueError on a malformed line."""
    users = []
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        if len(row) < 3:
            raise ValueError(f"line {number} must have at least 3 columns (token, user name, user uid)")
        token, name, uid, *rest = (column.strip() for column in row)
        if not token or not name:
            raise ValueError(f"line {number} lacks a token or a user name")
        groups = tuple(group for group in rest[0].split(",") if group) if rest else ()
        users.append((token, UserInfo(name, uid, groups)))
    return users


def read_token(path: Path, name: str) -> str:
    """Return the token of a user; raises ConfigError if the file has none."""
    try:
        users = parse_tokens(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the tokens in {path}: {error}") from None
    for token, user in users:
        if user.name == name:
            return token
    raise ConfigError(f"{path} has no token for {name}")


def _parse(text: str) -> dict[bytes, UserInfo]:
    return {_digest(token): user.authenticated() for token, user in parse_tokens(text)}


def _digest(token: str) -> bytes:
    # A header may hold any bytes; bytes that are not UTF-8 appear as surrogates.
    return sha256(token.encode(errors="surrogateescape")).digest()
