"""Who asks for a certificate: signers rely on the user in a CertificateSigningRequest, so the server writes it."""

from __future__ import annotations

from podlife.apiserver.admission import AdmissionRequest, Operation, Reader

_REQUESTS = "certificatesigningrequests.certificates.k8s.io"


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
