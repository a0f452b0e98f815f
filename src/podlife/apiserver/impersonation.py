"""Acting as somebody else: `kubectl --as`, and clients that answer for their own users.

Who sends the headers must be allowed to impersonate the user, each group and the UID; then the request is that
user's, and its rights too. A request that asks for it is never quietly served as the sender's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from podlife.apiserver.authentication import ANONYMOUS, User
from podlife.apiserver.authorization import Attributes
from podlife.errors import ApiError
from podlife.wire import Request

__all__ = ["act_as"]

_USER, _GROUP, _UID = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


def act_as(user: User, request: Request, check: Callable[[User, Attributes], None]) -> User:
    """Whom the request speaks for. `check` raises when the sender may not do what it is asked about."""
    headers = request.headers
    if _USER not in headers and _GROUP not in headers and _UID not in headers:
        return user
    name, uid, groups = headers.get(_USER, ""), headers.get(_UID, ""), _all(headers, _GROUP)
    if not name:
        raise ApiError(
            "groups or a UID were to be impersonated without a user", code=400, reason="BadRequest"
        )
    for asked in _asked(name, uid, groups):
        check(user, asked)
    return User(name, uid, _completed(name, groups))


def _all(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    every: Callable[[str, tuple[str, ...]], list[str]] | None = getattr(headers, "getall", None)
    if every is not None:
        return tuple(every(name, ()))
    return (headers[name],) if name in headers else ()


def _asked(name: str, uid: str, groups: tuple[str, ...]) -> Iterator[Attributes]:
    if account := _account(name):
        yield Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes("impersonate", resource="users", name=name)
    for group in groups:
        yield Attributes("impersonate", resource="groups", name=group)
    if uid:
        yield Attributes("impersonate", "authentication.k8s.io", "uids", name=uid)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account, if the user is one."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    return (namespace, account) if name.startswith(_ACCOUNT) and namespace and account else None


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups with those that every such user is in."""
    if not groups and (account := _account(name)):
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    always = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
    if _AUTHENTICATED in groups or _UNAUTHENTICATED in groups:
        return groups
    return (*groups, always)
