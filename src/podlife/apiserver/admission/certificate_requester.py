"""CertificateSigningRequests: who asks for a certificate, who may approve and sign it, and for whom none is signed.

Signers rely on the user in a request, so the server writes it. CertificateApproval and CertificateSigning check the
permissions `approve` and `sign` for the signer, by its name or by its domain (`example.com/*`);
CertificateSubjectRestriction keeps requests for `system:masters` from the signer of client certificates.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.authn import MASTERS, UserInfo
from podlife.apiserver.authz import Attributes, Decision

_GROUP = "certificates.k8s.io"
_REQUESTS = f"certificatesigningrequests.{_GROUP}"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def name_requester(attributes: AdmissionRequest, reader: Reader) -> None:
    request = attributes.new
    if (
        request is None
        or attributes.resource.key != _REQUESTS
        or attributes.operation is not Operation.CREATE
    ):
        return
    spec = request.setdefault("spec", {})
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    spec.update(attributes.user.to_object())


def restrict_signers(may: Callable[[UserInfo, Attributes], Decision]) -> Plugin:
    """CertificateApproval, CertificateSigning and CertificateSubjectRestriction."""

    def check(attributes: AdmissionRequest, verb: str) -> None:
        signer = ((attributes.old or {}).get("spec") or {}).get("signerName", "")
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if may(attributes.user, Attributes(verb, _GROUP, "signers", name=name)).allowed:
                return
        raise attributes.forbidden(f'user not permitted to {verb} requests with signerName "{signer}"')

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if attributes.resource.key != _REQUESTS or attributes.new is None:
            return
        if attributes.subresource == "approval":
            check(attributes, "approve")
        elif attributes.subresource == "status" and _is_signed(attributes):
            check(attributes, "sign")
        elif not attributes.subresource:
            _check_subject(attributes)

    return plugin


def _is_signed(attributes: AdmissionRequest) -> bool:
    """Whether the certificate or the conditions change."""
    new, old = ((each or {}).get("status") or {} for each in (attributes.new, attributes.old))
    return any((new.get(key) or None) != (old.get(key) or None) for key in ("certificate", "conditions"))


def _check_subject(attributes: AdmissionRequest) -> None:
    spec = (attributes.new or {}).get("spec") or {}
    if spec.get("signerName") != _CLIENT_SIGNER or attributes.operation is not Operation.CREATE:
        return
    # Loads a library that the server does not need otherwise.
    from podlife.pki.certificates import read_request

    try:
        wanted = read_request(base64.b64decode(spec.get("request") or ""))
    except ValueError:
        # Validation rejects it, or it is never signed.
        return
    if MASTERS in wanted.organizations:
        raise attributes.forbidden(f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
