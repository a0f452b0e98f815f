"""Scenarios of CertificateSigningRequests: what is asked for, who approves, and what is signed. For every API server
and its controllers."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podlife.client import Client
from podlife.pki.csr import SIGNING_REQUESTS

Object = dict[str, Any]
Outcome = tuple[tuple[tuple[str, str, str], ...], Object | None]
KUBELET, SERVING, CLIENT = "kube-apiserver-client-kubelet", "kubelet-serving", "kube-apiserver-client"
_DS, _KE, _CA, _SA = "digital signature", "key encipherment", "client auth", "server auth"
_DEADLINE_SECONDS = 60.0


@dataclass(frozen=True)
class Scenario:
    """`decision` is what a person decides; `conditions` and `certificate` what is left."""

    name: str
    signer: str
    usages: tuple[str, ...]
    common_name: str = "system:node:n1"
    organizations: tuple[str, ...] = ("system:nodes",)
    names: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    requester: str = "admin"
    decision: str = ""
    expiration_seconds: int | None = None
    conditions: tuple[tuple[str, str, str], ...] = ()
    certificate: Object | None = field(default=None)

    def __str__(self) -> str:
        return self.name


def _request(scenario: Scenario) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in scenario.organizations]
    name = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, scenario.common_name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    others: list[x509.GeneralName] = []
    for each in scenario.names:
        is_ip = each[0].isdigit()
        others.append(x509.IPAddress(ip_address(each)) if is_ip else x509.DNSName(each))
    others += [x509.RFC822Name(each) for each in scenario.emails]
    others += [x509.UniformResourceIdentifier(each) for each in scenario.uris]
    if others:
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def shown(pem: bytes) -> Object:
    """What a certificate is good for."""
    certificate = x509.load_pem_x509_certificate(pem)
    found: Object = {"subject": certificate.subject.rfc4514_string()}
    for extension in certificate.extensions:
        match extension.value:
            case x509.KeyUsage() as usage:
                kinds = ("digital_signature", "key_encipherment", "content_commitment", "key_cert_sign")
                found["usage"] = [kind for kind in kinds if getattr(usage, kind)]
            case x509.ExtendedKeyUsage() as usage:
                found["extended"] = sorted(each.dotted_string for each in usage)
            case x509.SubjectAlternativeName() as names:
                found["names"] = sorted(str(each.value) for each in names)
            case x509.BasicConstraints() as constraints:
                found["ca"] = constraints.ca
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return {**found, "minutes": round(lifetime.total_seconds() / 60)}


async def play(client: Client, scenario: Scenario, prefix: str = "csr", looks: int = 5) -> Outcome:
    """The conditions and the certificate that a request comes to, and stays with for this number of looks."""
    name = f"{prefix}-{scenario.name}"
    spec: Object = {
        "request": base64.b64encode(_request(scenario)).decode(),
        "signerName": f"kubernetes.io/{scenario.signer}",
        "usages": list(scenario.usages),
    }
    if scenario.expiration_seconds is not None:
        spec["expirationSeconds"] = scenario.expiration_seconds
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": SIGNING_REQUESTS.kind, "metadata": {"name": name}}
    who = {"Impersonate-User": scenario.requester, "Impersonate-Group": "system:masters"}
    await client.request("POST", SIGNING_REQUESTS.path(), body={**body, "spec": spec}, headers=who)
    if scenario.decision:
        found = await client.get(SIGNING_REQUESTS, name)
        condition = {"type": scenario.decision, "status": "True", "reason": "Test", "message": "by hand"}
        found.setdefault("status", {})["conditions"] = [condition]
        await client.update(SIGNING_REQUESTS, found, subresource="approval")
    return await _settled(client, scenario, name, looks)


async def _settled(client: Client, scenario: Scenario, name: str, looks: int) -> Outcome:
    held = 0
    found: Outcome = ((), None)
    for _ in range(round(_DEADLINE_SECONDS / 0.1)):
        status = (await client.get(SIGNING_REQUESTS, name)).get("status") or {}
        conditions = tuple(
            (each["type"], each.get("reason", ""), each.get("message", ""))
            for each in status.get("conditions") or ()
        )
        certificate = status.get("certificate")
        found = conditions, shown(base64.b64decode(certificate)) if certificate else None
        held = held + 1 if found == (scenario.conditions, scenario.certificate) else 0
        if held > looks:
            break
        await asyncio.sleep(0.1)
    return found


_APPROVED = ("Approved", "Test", "by hand")
_AUTO = ("Approved", "AutoApproved", "Auto approving kubelet client certificate after SubjectAccessReview.")
_SELF = (
    "Approved",
    "AutoApproved",
    "Auto approving self kubelet client certificate after SubjectAccessReview.",
)
_YEAR = 365 * 24 * 60
_CLIENT_OID, _SERVER_OID = "1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.1"


def _made(purpose: str, minutes: int = _YEAR, **changes: Any) -> Object:
    return {
        "subject": "CN=system:node:n1,O=system:nodes",
        "usage": ["digital_signature"],
        "extended": [purpose],
        "ca": False,
        "minutes": minutes,
        **changes,
    }


def _failed(why: str, *first: tuple[str, str, str]) -> Object:
    return {"conditions": (*(first or (_APPROVED,)), ("Failed", "SignerValidationFailure", why))}


_NODE: Object = {"signer": KUBELET, "usages": (_DS, _CA)}
_SERVES: Object = {
    "signer": SERVING,
    "usages": (_DS, _SA),
    "names": ("n1", "10.0.0.1"),
    "decision": "Approved",
}
_JANE: Object = {"signer": CLIENT, "usages": (_DS, _CA), "common_name": "jane", "organizations": ("devs",)}
_SUBJECT: Object = {"subject": "CN=jane,O=devs"}

_ALL: dict[str, Object] = {
    "node-client": {**_NODE, "conditions": (_AUTO,), "certificate": _made(_CLIENT_OID)},
    "node-client-for-itself": {
        **_NODE,
        "requester": "system:node:n1",
        "conditions": (_SELF,),
        "certificate": _made(_CLIENT_OID),
    },
    "node-client-with-rsa-usages": {
        **_NODE,
        "usages": (_DS, _KE, _CA),
        "conditions": (_AUTO,),
        "certificate": _made(_CLIENT_OID, usage=["digital_signature", "key_encipherment"]),
    },
    "node-client-of-other-group": {**_NODE, "organizations": ("others",)},
    "node-client-with-names": {**_NODE, "names": ("n1",)},
    "node-client-with-other-usages": {**_NODE, "usages": (_DS, _CA, _SA)},
    "node-client-of-a-person": {**_NODE, "common_name": "jane"},
    "node-client-denied": {
        **_SERVES,
        "decision": "Denied",
        "conditions": (("Denied", "Test", "by hand"),),
    },
    "other-group-approved": {
        **_NODE,
        "organizations": ("others",),
        "decision": "Approved",
        **_failed("subject organization is not system:nodes"),
    },
    "names-approved": {
        **_NODE,
        "names": ("n1",),
        "decision": "Approved",
        **_failed("DNS subjectAltNames are not allowed"),
    },
    "address-approved": {
        **_NODE,
        "names": ("10.0.0.1",),
        "decision": "Approved",
        **_failed("IP subjectAltNames are not allowed"),
    },
    "person-approved": {
        **_NODE,
        "common_name": "jane",
        "decision": "Approved",
        **_failed("subject common name does not begin with system:node:"),
    },
    "usages-approved": {
        **_NODE,
        "usages": (_DS, _CA, _SA),
        "decision": "Approved",
        **_failed("usages did not match [client auth digital signature key encipherment]"),
    },
    "serving-waits": {**_SERVES, "decision": ""},
    "serving": {
        **_SERVES,
        "conditions": (_APPROVED,),
        "certificate": _made(_SERVER_OID, names=["10.0.0.1", "n1"]),
    },
    "serving-without-names": {
        **_SERVES,
        "names": (),
        **_failed("DNS or IP subjectAltName is required"),
    },
    "serving-with-mail": {
        **_SERVES,
        "emails": ("a@example.com",),
        **_failed("Email subjectAltNames are not allowed"),
    },
    "serving-with-uri": {
        **_SERVES,
        "uris": ("https://example.com/",),
        **_failed("URI subjectAltNames are not allowed"),
    },
    "serving-for-clients": {
        **_SERVES,
        "usages": (_DS, _CA),
        **_failed("usages did not match [digital signature key encipherment server auth]"),
    },
    "serving-of-a-person": {
        **_SERVES,
        "common_name": "jane",
        **_failed("subject common name does not begin with system:node:"),
    },
    "client-waits": _JANE,
    "client": {
        **_JANE,
        "decision": "Approved",
        "conditions": (_APPROVED,),
        "certificate": _made(_CLIENT_OID, **_SUBJECT),
    },
    "client-with-names": {
        **_JANE,
        "names": ("a.example.com",),
        "emails": ("a@example.com",),
        "uris": ("spiffe://a/b",),
        "decision": "Approved",
        "conditions": (_APPROVED,),
        "certificate": _made(
            _CLIENT_OID, **_SUBJECT, names=["a.example.com", "a@example.com", "spiffe://a/b"]
        ),
    },
    "client-for-ten-minutes": {
        **_JANE,
        "decision": "Approved",
        "expiration_seconds": 600,
        "conditions": (_APPROVED,),
        "certificate": _made(_CLIENT_OID, 15, **_SUBJECT),
    },
    "client-for-a-day": {
        **_JANE,
        "decision": "Approved",
        "expiration_seconds": 86400,
        "conditions": (_APPROVED,),
        "certificate": _made(_CLIENT_OID, 1440, **_SUBJECT),
    },
    "client-for-ten-years": {
        **_JANE,
        "decision": "Approved",
        "expiration_seconds": 10 * 365 * 86400,
        "conditions": (_APPROVED,),
        "certificate": _made(_CLIENT_OID, **_SUBJECT),
    },
    "client-that-serves": {
        **_JANE,
        "usages": (_CA, _SA),
        "decision": "Approved",
        **_failed("invalid usage for client certificate: server auth"),
    },
    "client-without-purpose": {
        **_JANE,
        "usages": (_DS,),
        "decision": "Approved",
        **_failed("missing required usage for client certificate: client auth"),
    },
    "unknown-signer": {
        **_JANE,
        "signer": "no-such-signer",
        "decision": "Approved",
        "conditions": (_APPROVED,),
    },
}
SCENARIOS = tuple(Scenario(name, **fields) for name, fields in _ALL.items())
