"""POST to `certificatesigningrequests`: node certificates, signed at once and not stored. Requests to other signers,
and all of them on a server that signs none, are stored for their signers.

`kubernetes.io/kubelet-serving` is signed for requests by the node itself or by a member of `system:masters`. The
certificate carries the node's name and no other: the kubelet proxy identifies kubelets by it, whatever address they
report, so no node can impersonate another server.
`kubernetes.io/kube-apiserver-client-kubelet` is signed for the same users and for holders of a bootstrap token, as in
a cluster created by kubeadm.
"""

from __future__ import annotations

import base64
from typing import Any, Protocol

from podlife.api.codec import Object, encode, format_time
from podlife.api.field_errors import FieldError, bad_value, invalid, not_supported, required
from podlife.api.names import generate_name
from podlife.apiserver.admission import Operation
from podlife.apiserver.admission.certificate_requester import name_requester
from podlife.apiserver.authn import BOOTSTRAPPERS, MASTERS, UserInfo
from podlife.apiserver.registry import RequestScope, response
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.metadata import give_identity
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import read_object
from podlife.apiserver.registry.worker_threads import offload
from podlife.wire import Response

SIGNER = "kubernetes.io/kubelet-serving"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_PURPOSES = {SIGNER: "server auth", CLIENT_SIGNER: "client auth"}


class SignRequest(Protocol):
    def __call__(self, request: bytes, node_name: str, *, serves: bool = True) -> bytes:
        """Return a certificate (PEM) for a request (PEM) of the named node or, without a name, of the node that the
        request names: for serving, or for client authentication. Raises ValueError if the request is invalid."""
        ...


async def create(scope: RequestScope, sign: SignRequest | None) -> Response:
    """Return a node's request as upstream shows it once it has been approved and signed, or denied; store others."""
    dry_run = scope.dry_run("CreateOptions")
    body = await offload(lambda: read_object(scope), scope.request.body)
    if sign is None or body.setdefault("spec", {}).get("signerName") not in _PURPOSES:
        return await response.one(scope, await create_object(scope, body, dry_run=dry_run), status=201)
    await offload(lambda: _decide(scope, body, None if dry_run else sign), scope.request.body)
    return Response(201, encode(with_type(scope.resource, body)), headers=response.headers(scope))


def _decide(scope: RequestScope, body: Object, sign: SignRequest | None) -> None:
    spec, metadata = body["spec"], body["metadata"]
    _check(body, spec)
    name_requester(scope.admission(Operation.CREATE, new=body), scope.registry.store.get)
    metadata["name"] = metadata.get("name") or generate_name(metadata.get("generateName", ""))
    give_identity(metadata, scope.now, scope.registry.chance)
    now = format_time(scope.now)
    body["status"] = {} if sign is None else _decision(scope.user, spec, metadata["name"], sign, now)


def _check(body: Object, spec: Object) -> None:
    errors: list[FieldError] = []
    metadata = body["metadata"]
    if not metadata.get("name") and not metadata.get("generateName"):
        errors.append(required("metadata.name", "name or generateName is required"))
    if not spec.get("request"):
        errors.append(required("spec.request"))
    purpose = _PURPOSES[spec["signerName"]]
    known = frozenset({"digital signature", "key encipherment", purpose})
    usages = spec.get("usages") or []
    errors += [not_supported("spec.usages", usage, known) for usage in usages if usage not in known]
    if purpose not in usages:
        errors.append(required("spec.usages", f"{purpose} is required"))
    if errors:
        raise invalid("CertificateSigningRequest", "certificates.k8s.io", metadata.get("name", ""), errors)


def _decision(user: UserInfo, spec: Object, name: str, sign: SignRequest, now: str) -> Object:
    serves = spec["signerName"] == SIGNER
    may_join = not serves and BOOTSTRAPPERS in user.groups
    if not user.node_name and not may_join and MASTERS not in user.groups:
        kind = "serving" if serves else "client"
        why = f"only a node may request a kubelet {kind} certificate, and only for itself"
        return {"conditions": [_condition("Denied", "NotANode", why, now)]}
    try:
        certificate = sign(base64.b64decode(spec["request"]), user.node_name, serves=serves)
    except ValueError as error:
        problem = bad_value("spec.request", "<PEM>", str(error))
        raise invalid("CertificateSigningRequest", "certificates.k8s.io", name, [problem]) from None
    requester = "a holder of a bootstrap token" if may_join else f"a member of {MASTERS}"
    why = f"requested by {'the node itself' if user.node_name else requester}"
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
