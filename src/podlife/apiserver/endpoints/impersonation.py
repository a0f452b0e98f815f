"""Impersonation: `kubectl --as`, and clients that act for their own users.

The sender must be allowed to impersonate the user, each group, the UID and each extra value; the request is then
authorized as that user's. A request with impersonation headers is never served as the sender's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.apiserver.authn import ANONYMOUS, UserInfo
from podlife.apiserver.authz import Attributes
from podlife.apiserver.registry.request_body import bad_request
from podlife.wire import Request

_USER, _GROUP, _UID = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


async def act_as(
    user: UserInfo, request: Request, check: Callable[[UserInfo, Attributes], Awaitable[None]]
) -> UserInfo:
    """Return the user to act as. `check` raises if the sender may not impersonate."""
    headers = request.headers
    extra = [header for header in headers if header.lower().startswith(_EXTRA)]
    if not extra and _USER not in headers and _GROUP not in headers and _UID not in headers:
        return user
    name, uid, groups = headers.get(_USER, ""), headers.get(_UID, ""), _all(headers, _GROUP)
    if not name:
        raise bad_request(
            "requested to impersonate groups, a UID or extra values without impersonating a user"
        )
    for attributes in (*_asked(name, uid, groups), *_asked_extra(headers, extra)):
        await check(user, attributes)
        if not _is_utf_8(attributes.name):
            raise bad_request(f"impersonation headers must be UTF-8, got {attributes.name!r}")
    return UserInfo(name, uid, _completed(name, groups), tuple(_extra(headers, extra)))


def _is_utf_8(value: str) -> bool:
    """Bytes that are not appear as surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


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


def _extra(headers: Mapping[str, str], extra: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for header in dict.fromkeys(each.lower() for each in extra):
        yield unquote(header.removeprefix(_EXTRA)), _all(headers, header)


def _asked_extra(headers: Mapping[str, str], extra: Iterable[str]) -> Iterator[Attributes]:
    for key, values in _extra(headers, extra):
        for value in values:
            yield Attributes("impersonate", "authentication.k8s.io", "userextras", key, name=value)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account, if the user is one."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if not name.startswith(_ACCOUNT) or not name.isascii():
        return None
    if check_dns_label(namespace) or check_dns_subdomain(account):
        return None
    return namespace, account


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add the groups that every such user belongs to."""
    if not groups and (account := _account(name)):
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    always = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
    if _AUTHENTICATED in groups or _UNAUTHENTICATED in groups:
        return groups
    return (*groups, always)
