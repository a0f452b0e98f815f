"""CertificateSigningRequests to signers that neither server has."""

from __future__ import annotations

import base64
from typing import Any

from tests.real.differential.areas.objects import of
from tests.real.differential.steps import Area

CERTIFICATES = Area("certificates", namespace=False)
_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_PEM = """\
-----BEGIN CERTIFICATE REQUEST-----
MIHbMIGCAgEAMCAxDzANBgNVBAoMBnBlb3BsZTENMAsGA1UEAwwEamFuZTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABLXYMN8VH4OelhEnP5iOIJZnusANEK9YGlyP
o0qHKntwpG9j4PHQFotLHJFSO88N6fhk0HZdxl/nS/iIOt/IMQigADAKBggqhkjO
PQQDAgNIADBFAiBI266h033Z+P76GHi47Eq39jLW2PJyAfKRBEeyVHKK6AIhAJbq
KXhJ7ws7iR/vJCjPMnIb+W8fOZLZj22czBGMTGrJ
-----END CERTIFICATE REQUEST-----
"""
_TIMES = {"lastUpdateTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def _request(name: str, **spec: Any) -> dict[str, Any]:
    request = base64.b64encode(_PEM.encode()).decode()
    given = {"request": request, "signerName": "example.com/signer", "usages": ["client auth"]}
    return of("certificates.k8s.io/v1", "CertificateSigningRequest", name, spec=given | spec)


def _conditions(*kinds: str, **fields: Any) -> dict[str, Any]:
    made = [{"type": kind, "status": "True", "reason": "Because", **_TIMES, **fields} for kind in kinds]
    return {"status": {"conditions": made}}


CERTIFICATES.post("create", _PATH, _request("diff-one", username="eve", groups=["a"], expirationSeconds=3600))
CERTIFICATES.post("create-again", _PATH, _request("diff-one"), 409)
CERTIFICATES.post(
    "create-with-status", _PATH, _request("diff:two") | _conditions("Approved"), keep={"uid": "metadata.uid"}
)
CERTIFICATES.post("dry-run", f"{_PATH}?dryRun=All", _request("diff-three"))
_refused: dict[str, dict[str, Any]] = {
    "no-signer": {"signerName": ""},
    "short-signer": {"signerName": "signer"},
    "bad-signer": {"signerName": "Example/a_b"},
    "legacy-signer": {"signerName": "kubernetes.io/legacy-unknown"},
    "no-usages": {"usages": []},
    "bad-usages": {"usages": ["any", "flying", "any"]},
    "short": {"expirationSeconds": 599},
}
for _name, _spec in _refused.items():
    CERTIFICATES.post(f"refused-{_name}", _PATH, _request("diff-refused", **_spec), 422)
CERTIFICATES.get("get", f"{_PATH}/diff-one")
CERTIFICATES.get("selected", f"{_PATH}?fieldSelector=spec.signerName%3Dexample.com/signer")
CERTIFICATES.get("selected-none", f"{_PATH}?fieldSelector=spec.signerName%3Dexample.com/other")
CERTIFICATES.patch("spec-stays", "merge", f"{_PATH}/diff-one", {"spec": {"usages": ["any"]}})
CERTIFICATES.patch("label", "merge", f"{_PATH}/diff-one", {"metadata": {"labels": {"a": "b"}}})
CERTIFICATES.patch("not-by-the-object", "merge", f"{_PATH}/diff-one", _conditions("Approved"))
CERTIFICATES.patch("not-by-status", "merge", f"{_PATH}/diff-one/status", _conditions("Approved"), 422)
CERTIFICATES.patch("failed", "merge", f"{_PATH}/diff:two/status", _conditions("Failed"))
CERTIFICATES.patch("failed-stays", "merge", f"{_PATH}/diff:two/status", {"status": {"conditions": []}}, 422)
CERTIFICATES.patch("both", "merge", f"{_PATH}/diff-one/approval", _conditions("Approved", "Denied"), 422)
CERTIFICATES.patch(
    "not-true", "merge", f"{_PATH}/diff-one/approval", _conditions("Approved", status="False"), 422
)
CERTIFICATES.patch("no-type", "merge", f"{_PATH}/diff-one/approval", _conditions("", status=""), 422)
CERTIFICATES.patch("approve", "merge", f"{_PATH}/diff-one/approval", _conditions("Approved"))
_untimed = _conditions("Approved", lastUpdateTime=None, lastTransitionTime=None)
CERTIFICATES.patch("approve-again-without-times", "merge", f"{_PATH}/diff-one/approval", _untimed)
CERTIFICATES.patch(
    "deny-without-times",
    "merge",
    f"{_PATH}/diff:two/approval",
    {"status": {"conditions": [{"type": "Failed", "status": "True"}, {"type": "Denied", "status": "True"}]}},
)
CERTIFICATES.patch("unapprove", "merge", f"{_PATH}/diff-one/approval", {"status": {"conditions": []}}, 422)
CERTIFICATES.patch(
    "approved-stays", "merge", f"{_PATH}/diff-one/status", _conditions("Approved", reason="Otherwise")
)
CERTIFICATES.get("approval", f"{_PATH}/diff-one/approval")
CERTIFICATES.get("rows", _PATH, headers=_TABLE)
CERTIFICATES.delete("delete", f"{_PATH}/diff-one")
CERTIFICATES.delete("delete-other", f"{_PATH}/diff:two")
CERTIFICATES.get("gone", f"{_PATH}/diff-one", 404)
CERTIFICATES.delete("delete-again", f"{_PATH}/diff-one", code=404)
