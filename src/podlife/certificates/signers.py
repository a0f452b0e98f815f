"""What the cluster's signers require of a request, how long a certificate is valid, and when a request is too old.
Pure; the messages are upstream's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from podlife.certificates.views import SigningRequest
from podlife.pki import RequestedCertificate

KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_CLIENT, _SERVER = "client auth", "server auth"
_ORGANIZATION, _COMMON_NAME = "system:nodes", "system:node:"
_BACKDATE = timedelta(minutes=5)
# Of a certificate that is valid for less, the end is not backdated.
_SHORT = timedelta(hours=8)
_LEAST = timedelta(minutes=10)
_DECIDED_LIFETIME, _PENDING_LIFETIME = timedelta(hours=1), timedelta(days=1)


def _check_kubelet(wanted: RequestedCertificate, usages: Iterable[str], purpose: str) -> str:
    if wanted.organizations != (_ORGANIZATION,):
        return f"subject organization is not {_ORGANIZATION}"
    if problem := _check_names(wanted, is_serving=purpose == _SERVER):
        return problem
    bad_usages = _check_kubelet_usages(usages, purpose)
    is_node = wanted.common_name.startswith(_COMMON_NAME)
    bad_name = "" if is_node else f"subject common name does not begin with {_COMMON_NAME}"
    # As upstream: of a serving certificate the usages are checked first, of a client certificate the name.
    return (bad_usages or bad_name) if purpose == _SERVER else (bad_name or bad_usages)


def _check_names(wanted: RequestedCertificate, *, is_serving: bool) -> str:
    if is_serving and not wanted.dns_names and not wanted.ip_addresses:
        return "DNS or IP subjectAltName is required"
    for kind, names in (
        ("DNS", () if is_serving else wanted.dns_names),
        ("Email", wanted.emails),
        ("IP", () if is_serving else wanted.ip_addresses),
        ("URI", wanted.uris),
    ):
        if names:
            return f"{kind} subjectAltNames are not allowed"
    return ""


def _check_kubelet_usages(usages: Iterable[str], purpose: str) -> str:
    required = {"digital signature", "key encipherment", purpose}
    if set(usages) in (required, required - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"


def _check_client(wanted: RequestedCertificate, usages: Iterable[str]) -> str:
    given = list(usages)
    for usage in given:
        if usage not in ("digital signature", "key encipherment", _CLIENT):
            return f"invalid usage for client certificate: {usage}"
    return "" if _CLIENT in given else f"missing required usage for client certificate: {_CLIENT}"


SIGNERS: Mapping[str, Callable[[RequestedCertificate, Iterable[str]], str]] = {
    "kubernetes.io/kubelet-serving": lambda wanted, usages: _check_kubelet(wanted, usages, _SERVER),
    KUBELET_CLIENT: lambda wanted, usages: _check_kubelet(wanted, usages, _CLIENT),
    "kubernetes.io/kube-apiserver-client": _check_client,
}
"""By signer: what is wrong with a request; empty if nothing is. Requests to upstream's fourth, `legacy-unknown`, are
rejected by every server since v1.22."""


def validity(now: datetime, seconds: int | None, longest: timedelta) -> tuple[datetime, datetime]:
    """Begin and end of a certificate for which this lifetime was requested."""
    lifetime = longest if seconds is None else max(_LEAST, timedelta(seconds=seconds))
    lifetime = min(longest, lifetime)
    return now - _BACKDATE, now + lifetime - (timedelta() if lifetime < _SHORT else _BACKDATE)


def approval_subresources(request: SigningRequest, wanted: RequestedCertificate) -> tuple[str, ...]:
    """The permissions that allow a kubelet's request, any of which suffices."""
    if request.spec.signer_name != KUBELET_CLIENT or _check_kubelet(wanted, request.spec.usages, _CLIENT):
        return ()
    is_own = request.spec.username == wanted.common_name
    return ("selfnodeclient", "nodeclient") if is_own else ("nodeclient",)


def is_too_old(request: SigningRequest, now: datetime) -> bool:
    """Whether it can be removed; an expired certificate is older than that in any case."""
    conditions, created = request.status.conditions, request.metadata.creation_timestamp
    if not conditions:
        return created is not None and now - created > _PENDING_LIFETIME
    for each in conditions:
        is_waiting = each.type == "Approved" and not request.status.certificate
        lifetime = _PENDING_LIFETIME if is_waiting else _DECIDED_LIFETIME
        if each.last_update_time is not None and now - each.last_update_time > lifetime:
            return True
    return False
