"""Authentication by bearer token or client certificate, and the users that every cluster has.

A client certificate identifies its subject: the common name is the user, the organizations are the groups. TLS has
verified it before this module sees it. A token belongs to a service account (`service_accounts`), or is in a static
token file, in kube-apiserver's format (`token,user,uid,"group,group"`), which is read again when it changes: a removed
token stops working at once. Anonymous requests are limited to health checks and to what a node needs before it joins,
as upstream with anonymous authentication restricted to those paths.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from podlife.api.codec import Object
from podlife.errors import ConfigError, UnauthorizedError
from podlife.wire import Request

log = logging.getLogger(__name__)

AUTHENTICATED = "system:authenticated"
# Group of users that hold a bootstrap token and have no other rights.
BOOTSTRAPPERS = "system:bootstrappers"
MASTERS = "system:masters"
# Namespace and name of the ConfigMap a joining node reads first: the server's address and CA. It is public.
CLUSTER_INFO = ("kube-public", "cluster-info")
_OPEN_PATHS = frozenset(
    {"/healthz", "/livez", "/readyz", "/api/v1/namespaces/{}/configmaps/{}".format(*CLUSTER_INFO)}
)


@dataclass(frozen=True, slots=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    # What else the credential says, by key: the pod and the node of a service account's token.
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def node_name(self) -> str:
        """Name of the node this user is the identity of; empty for other users."""
        if self.name.startswith("system:node:") and "system:nodes" in self.groups:
            return self.name.removeprefix("system:node:")
        return ""

    def to_object(self) -> Object:
        """As reviews, certificate requests and audit events show a user: without what is empty."""
        found: Object = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        found["extra"] = {key: list(values) for key, values in self.extra}
        return {key: value for key, value in found.items() if value}

    def authenticated(self) -> UserInfo:
        """Return this user as a member of `system:authenticated`."""
        if AUTHENTICATED in self.groups:
            return self
        return replace(self, groups=(*self.groups, AUTHENTICATED))


ADMIN = UserInfo("admin", "admin", (MASTERS,))
CONTROLLERS = UserInfo("system:kube-controller-manager", "controllers")
ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))


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
        seen = file_version(self._path)
        if seen is None:
            self._users = {}
        if seen is None or seen == self._seen:
            self._seen = seen
            return
        self._seen = seen
        try:
            users = parse_tokens(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            # A half-edited file must not lock everyone out: keep the tokens read before.
            log.error("cannot read the tokens in %s: %s", self._path, error)
        else:
            self._users = {_digest(token): user.authenticated() for token, user in users}


def file_version(path: Path) -> tuple[int, int, int] | None:
    """Another value whenever the file has changed; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


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


def _digest(token: str) -> bytes:
    # A header may hold any bytes; bytes that are not UTF-8 appear as surrogates.
    return sha256(token.encode(errors="surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The user of a token, and those of the audiences asked about that the token is for."""

    user: UserInfo
    audiences: tuple[str, ...] = ()


class TokenIssuer(Protocol):
    """Issues tokens of its own, and knows whom they belong to."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """What this server calls itself in tokens."""
        ...

    def authenticate(self, token: str, audiences: Sequence[str]) -> Authenticated | None:
        """None for a token of another issuer. Raises UnauthorizedError with the reason."""
        ...


class Authenticator:
    def __init__(self, tokens: TokenFile | None = None, service_accounts: TokenIssuer | None = None) -> None:
        self._tokens = tokens
        self._service_accounts = service_accounts

    def authenticate(self, request: Request) -> UserInfo:
        """Return the user that sent the request; raises UnauthorizedError."""
        if request.peer is not None:
            return UserInfo(request.peer.common_name, groups=request.peer.organizations).authenticated()
        header = request.headers.get("Authorization", "")
        if not header:
            if request.path in _OPEN_PATHS:
                return ANONYMOUS
            raise UnauthorizedError("Unauthorized")
        scheme, _, token = header.strip().partition(" ")
        try:
            found = self.find_token(token.strip() if scheme.lower() == "bearer" else "")
        except UnauthorizedError:
            # The reason is for reviews: a client that guesses tokens learns nothing.
            found = None
        if found is None:
            raise UnauthorizedError("Unauthorized")
        return found.user

    def find_token(self, token: str, audiences: Sequence[str] = ()) -> Authenticated | None:
        """Return the user that a token belongs to, for one of these audiences or, without any, for this server. None
        if no such token is known; raises UnauthorizedError with the reason if one is known and invalid."""
        own = () if self._service_accounts is None else self._service_accounts.audiences
        wanted = tuple(audiences) or own
        user = self._tokens.find(token) if self._tokens and token else None
        if user is not None:
            # A token of the file is for this server only.
            common = tuple(each for each in own if each in wanted)
            return Authenticated(user, common) if common or not wanted else None
        if self._service_accounts is None or not token:
            return None
        return self._service_accounts.authenticate(token, wanted)
