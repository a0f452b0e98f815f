"""Who is asking: bearer tokens and client certificates.

A token file has kube-apiserver's format (`token,user,uid,"group,group"`), is read again when it changes, and
a token that is taken out of it stops working at once. A client certificate speaks for its subject: the
common name is the user, the organizations are the groups. The face has verified it.

Nobody is anonymous, but for the health of the server and what a node needs to know before it joins, as upstream with
anonymous requests limited to those.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from podlife.errors import ConfigError, UnauthorizedError
from podlife.wire import Request

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "BOOTSTRAPPERS",
    "CLUSTER_INFO",
    "CONTROLLERS",
    "Authenticator",
    "TokenFile",
    "User",
    "format_tokens",
    "parse_tokens",
    "read_token",
]

log = logging.getLogger(__name__)

_AUTHENTICATED = "system:authenticated"
# Those who have a token to join a cluster with, and no other right.
BOOTSTRAPPERS = "system:bootstrappers"
# Namespace and name of what they begin with: the address of the server and its authority, secret to nobody.
CLUSTER_INFO = ("kube-public", "cluster-info")
_OPEN_PATHS = frozenset(
    {"/healthz", "/livez", "/readyz", "/api/v1/namespaces/{}/configmaps/{}".format(*CLUSTER_INFO)}
)
_MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()

    @property
    def node_name(self) -> str:
        """The node this is the identity of; empty for everybody else."""
        if self.name.startswith("system:node:") and "system:nodes" in self.groups:
            return self.name.removeprefix("system:node:")
        return ""


ADMIN = User("admin", "admin", (_MASTERS,))
CONTROLLERS = User("system:kube-controller-manager", "controllers")
ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class TokenFile:
    """The users of a token file, always those that stand in it now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._users: Mapping[bytes, User] = {}

    def find(self, token: str) -> User | None:
        self._refresh()
        # Looked up by its digest: how long that takes tells nothing about the tokens there are.
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
            # A file that is half edited must not lock everybody out: those known so far stay.
            log.error("cannot read the tokens in %s: %s", self._path, error)


class Authenticator:
    def __init__(self, tokens: TokenFile | None = None) -> None:
        self._tokens = tokens

    def authenticate(self, request: Request) -> User:
        """Who sent this request; raises UnauthorizedError when that cannot be told."""
        if request.peer is not None:
            return _authenticated(User(request.peer.common_name, groups=request.peer.organizations))
        header = request.headers.get("Authorization", "")
        if not header:
            if request.path in _OPEN_PATHS:
                return ANONYMOUS
            raise UnauthorizedError("Unauthorized")
        user = self.find_token(_bearer_token(header))
        if user is None:
            raise UnauthorizedError("Unauthorized")
        return user

    def find_token(self, token: str) -> User | None:
        """The user behind a token, as a TokenReview asks."""
        return self._tokens.find(token) if self._tokens and token else None


def format_tokens(users: Iterable[tuple[str, User]]) -> str:
    """The text of a token file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for token, user in users:
        writer.writerow([token, user.name, user.uid, ",".join(user.groups)])
    return text.getvalue()


def parse_tokens(text: str) -> list[tuple[str, User]]:
    """The users of a token file's text; raises ValueError when a line is not one."""
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
        users.append((token, User(name, uid, groups)))
    return users


def read_token(path: Path, name: str) -> str:
    """The token of a user; raises ConfigError when the file has none."""
    try:
        users = parse_tokens(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the tokens in {path}: {error}") from None
    for token, user in users:
        if user.name == name:
            return token
    raise ConfigError(f"{path} has no token for {name}")


def _parse(text: str) -> dict[bytes, User]:
    return {_digest(token): _authenticated(user) for token, user in parse_tokens(text)}


def _digest(token: str) -> bytes:
    # A header may hold any bytes; those that are no text stand in it as surrogates.
    return sha256(token.encode(errors="surrogateescape")).digest()


def _bearer_token(header: str) -> str:
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _authenticated(user: User) -> User:
    if _AUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, _AUTHENTICATED))
