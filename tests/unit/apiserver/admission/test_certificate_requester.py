"""CertificateApproval and CertificateSigning: the signer's permission, by its name or by its domain."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.admission import AdmissionRequest, Operation
from podlife.apiserver.admission.certificate_requester import restrict_signers
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Decision
from podlife.apiserver.resource import Resource
from podlife.errors import ForbiddenError

REQUESTS = Resource(
    "certificates.k8s.io",
    "v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    namespaced=False,
)
OLD: dict[str, Any] = {"metadata": {"name": "r"}, "spec": {"signerName": "example.com/signer"}, "status": {}}
DECIDED = {"conditions": [{"type": "Approved", "status": "True"}]}


def admit(subresource: str, status: dict[str, Any], *allowed: tuple[str, str]) -> None:
    def may(user: UserInfo, asked: Attributes) -> Decision:
        assert (asked.group, asked.resource) == ("certificates.k8s.io", "signers")
        return Decision((asked.verb, asked.name) in allowed)

    new = {**OLD, "spec": {"signerName": "example.com/mine"}, "status": status}
    change = AdmissionRequest(
        Operation.UPDATE, UserInfo("jane"), REQUESTS, "", "r", subresource=subresource, new=new, old=OLD
    )
    restrict_signers(may)(change, lambda key: None)


@pytest.mark.parametrize(
    ("subresource", "verb", "status"),
    [
        ("approval", "approve", DECIDED),
        ("status", "sign", DECIDED),
        ("status", "sign", {"certificate": "eA=="}),
    ],
)
def test_the_permission_is_that_of_the_stored_signer(
    subresource: str, verb: str, status: dict[str, Any]
) -> None:
    for name in ("example.com/signer", "example.com/*"):
        admit(subresource, status, (verb, name))
    for others in (
        (),
        ((verb, "example.com/mine"),),
        (("approve" if verb == "sign" else "sign", "example.com/*"),),
    ):
        words = f'user not permitted to {verb} requests with signerName "example.com/signer"'
        with pytest.raises(ForbiddenError, match=words):
            admit(subresource, status, *others)


def test_a_status_that_changes_neither_needs_no_permission() -> None:
    admit("status", {})
