"""Certificates of nodes: POST to `certificatesigningrequests`, signed at once. Nothing of it is stored.

`kubernetes.io/kubelet-serving`, with which a node serves, is signed for a node that asks for itself, or for whoever may
do anything and asks for a node. The certificate is for the node's own name and no other: by it this server's proxy
knows its agents, wherever they say they are; so no node gets a certificate with which it could pass for another server.
`kubernetes.io/kube-apiserver-client-kubelet`, with which a node proves who it is, is signed for those too, and for who
has a token to join with, as a cluster made by kubeadm does.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any, Protocol

from podlife.api.codec import Object, encode, format_time
from podlife.api.field_errors import FieldError, bad_value, invalid, not_supported, required
from podlife.api.names import generate_name
from podlife.apiserver.authn.authenticator import BOOTSTRAPPERS, User
from podlife.apiserver.registry import response as output
from podlife.apiserver.registry.metadata import give_identity
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import read_object
from podlife.apiserver.registry.request_scope import Registry, Scope
from podlife.errors import ApiError
from podlife.wire import Response

__all__ = ["CLIENT_SIGNER", "SIGNER", "SignRequest", "answer"]

SIGNER = "kubernetes.io/kubelet-serving"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_PURPOSES = {SIGNER: "server auth", CLIENT_SIGNER: "client auth"}
_MASTERS = "system:masters"


class SignRequest(Protocol):
    def __call__(self, request: bytes, node_name: str, *, serves: bool = True) -> bytes:
        """A certificate (PEM) for a request (PEM) of the node of that name, or without a name of the one that it names
        itself: to serve with, or to prove who it is. Raises ValueError where the request is not one."""
        ...


def answer(registry: Registry, scope: Scope, sign: SignRequest | None, at: datetime) -> Response:
    """The request as upstream would show it once it was approved and signed, or denied."""
    if sign is None:
        raise ApiError("this server signs no certificates", code=503, reason="ServiceUnavailable")
    dry_run = scope.dry_run("CreateOptions")
    body = with_type(scope.resource, read_object(scope))
    spec: Object = body.setdefault("spec", {})
    _check(body, spec)
    metadata = body["metadata"]
    metadata["name"] = metadata.get("name") or generate_name(metadata.get("generateName", ""))
    give_identity(metadata, at, registry.chance)
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    asked_by = {"username": scope.user.name, "uid": scope.user.uid, "groups": list(scope.user.groups)}
    spec.update({field: value for field, value in asked_by.items() if value})
    now = format_time(at)
    body["status"] = {} if dry_run else _decision(scope.user, spec, metadata["name"], sign, now)
    return Response(201, encode(body), headers=output.headers(scope))


def _check(body: Object, spec: Object) -> None:
    errors: list[FieldError] = []
    metadata = body["metadata"]
    if not metadata.get("name") and not metadata.get("generateName"):
        errors.append(required("metadata.name", "name or generateName is required"))
    if not spec.get("request"):
        errors.append(required("spec.request"))
    signer = spec.get("signerName", "")
    if signer not in _PURPOSES:
        errors.append(not_supported("spec.signerName", signer, frozenset(_PURPOSES)))
    purpose = _PURPOSES.get(signer, "server auth")
    known = frozenset({"digital signature", "key encipherment", purpose})
    usages = spec.get("usages") or []
    errors += [not_supported("spec.usages", usage, known) for usage in usages if usage not in known]
    if purpose not in usages:
        errors.append(required("spec.usages", f"{purpose} is required"))
    if errors:
        raise invalid("CertificateSigningRequest", "certificates.k8s.io", metadata.get("name", ""), errors)


def _decision(user: User, spec: Object, name: str, sign: SignRequest, now: str) -> Object:
    serves = spec["signerName"] == SIGNER
    may_join = not serves and BOOTSTRAPPERS in user.groups
    if not user.node_name and not may_join and _MASTERS not in user.groups:
        what = "serve with" if serves else "be a node with"
        why = f"only a node may ask for a certificate to {what}, and only for itself"
        return {"conditions": [_condition("Denied", "NotANode", why, now)]}
    try:
        certificate = sign(base64.b64decode(spec["request"]), user.node_name, serves=serves)
    except ValueError as error:
        problem = bad_value("spec.request", "<PEM>", str(error))
        raise invalid("CertificateSigningRequest", "certificates.k8s.io", name, [problem]) from None
    who = "who has a token to join with" if may_join else "somebody who may do anything"
    why = "a node asks for itself" if user.node_name else f"{who} asks for a node"
    return {
        "conditions": [_condition("Approved", "AutoApproved", why, now)],
        "certificate": base64.b64encode(certificate).decode(),
    }


def _condition(type_: str, reason: str, message: str, now: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }
