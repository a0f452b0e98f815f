"""CertificateSigningRequests to other signers; `endpoints/certificate_signing_requests` answers those of nodes.

A request never changes; `approval` writes the conditions of its status, `status` the rest. The signature of a request
is left to its signer: checking it takes a library that the server does not load.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.apiserver.strategies.field_checks import one_of, required_choice, show_times, unique
from podlife.apiserver.strategies.strategy import Strategy, keep_field

_NAMES_OF_USAGES = (
    "any,cert sign,client auth,code signing,content commitment,crl sign,data encipherment,decipher only,"
    "digital signature,email protection,encipher only,ipsec end system,ipsec tunnel,ipsec user,key agreement,"
    "key encipherment,microsoft sgc,netscape sgc,ocsp signing,s/mime,server auth,signing,timestamping"
)
_USAGES = frozenset(_NAMES_OF_USAGES.split(","))
_DECISIONS = ("Approved", "Denied")
_LASTING = (*_DECISIONS, "Failed")
_LEAST_SECONDS = 600
_is_request = re.compile(
    rb"\s*-----BEGIN CERTIFICATE REQUEST-----\s[\sA-Za-z0-9+/=]+-----END CERTIFICATE REQUEST-----\s*"
).fullmatch


def _any_name(name: str, *, prefix: bool = False) -> list[str]:
    return []


class CertificateSigningRequestStrategy(Strategy):
    has_status = True
    kept_by_update = (("spec",),)
    kept_by_status = (("status", "conditions"),)
    validate_name = staticmethod(_any_name)

    def default(self, obj: Object) -> None:
        show_times(obj.setdefault("status", {}), "lastUpdateTime", "lastTransitionTime")

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        """Conditions that come without times get them; a transition keeps its time while the status stays."""
        before = {(each.get("type"), each.get("status")): each for each in _conditions(old or {"status": {}})}
        for each in _conditions(new):
            known = before.get((each.get("type"), each.get("status")), {}).get("lastTransitionTime")
            each["lastUpdateTime"] = each.get("lastUpdateTime") or format_time(now)
            each["lastTransitionTime"] = each.get("lastTransitionTime") or known or format_time(now)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        keep_field(new, old, "spec")

    def validate(self, obj: Object) -> list[FieldError]:
        return list(_validate_spec(obj.get("spec") or {}))

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        for kind in _DECISIONS:
            was, is_now = _conditions(old, kind), _conditions(new, kind)
            if len(was) == len(is_now):
                for before, after in zip(was, is_now, strict=True):
                    after.clear()
                    after.update(before)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        added = [kind for kind in _DECISIONS if len(_conditions(new, kind)) > len(_conditions(old, kind))]
        detail = 'updates may not add a condition of type "{}"'
        errors = list(_validate_conditions(new, old))
        errors += [forbidden("status.conditions", detail.format(kind)) for kind in added]
        was = old["status"].get("certificate")
        if was and new["status"].get("certificate") != was:
            errors.append(
                forbidden("status.certificate", "updates may not modify existing certificate content")
            )
        return errors


class ApprovalStrategy(CertificateSigningRequestStrategy):
    """`approval`: the only way to approve or deny a request."""

    def prepare_update(self, new: Object, old: Object) -> None:
        conditions = new["status"].get("conditions")
        super().prepare_update(new, old)
        new["status"] = {key: value for key, value in old["status"].items() if key != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(_validate_conditions(new, old))


def _conditions(obj: Object, kind: str = "") -> list[Object]:
    return [each for each in obj["status"].get("conditions") or () if kind in ("", each.get("type"))]


def _validate_spec(spec: Object) -> FieldErrors:
    try:
        request = base64.b64decode(spec.get("request") or "", validate=True)
    except binascii.Error:
        request = b""
    if not _is_request(request):
        yield bad_value("spec.request", "<PEM>", "PEM block type must be CERTIFICATE REQUEST")
    usages, seen = spec.get("usages") or [], set[str]()
    if not usages:
        yield required("spec.usages")
    for index, usage in enumerate(usages):
        yield from one_of(f"spec.usages[{index}]", usage, _USAGES)
        yield from unique(f"spec.usages[{index}]", usage, seen)
    yield from _validate_signer(spec.get("signerName", ""))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield bad_value("spec.expirationSeconds", seconds, detail)


def _validate_signer(name: str) -> FieldErrors:
    path = "spec.signerName"
    if not name:
        yield required(path)
        return
    if name == "kubernetes.io/legacy-unknown":
        yield bad_value(path, name, "the legacy signerName is not allowed via this API version")
        return
    domain, _, signer = name.partition("/")
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield bad_value(path, name, detail)
        return
    labels = domain.split(".")
    for label, problems in ((each, check_dns_label(each)) for each in labels):
        if problems:
            yield bad_value(path, domain, f'validating label "{label}": {problems[0]}')
            break
    if len(labels) < 2:
        yield bad_value(path, domain, "should be a domain with at least two segments separated by dots")
    for problem in check_dns_subdomain(signer):
        yield bad_value(path, signer, f'validating label "{signer}": {problem}')


def _validate_conditions(new: Object, old: Object) -> FieldErrors:
    path, seen = "status.conditions", set[str]()
    for index, condition in enumerate(_conditions(new)):
        kind = condition.get("type", "")
        if not kind:
            yield required(f"{path}[{index}].type")
        choices = ("True",) if kind in _LASTING else ("False", "True", "Unknown")
        yield from required_choice(f"{path}[{index}].status", condition.get("status", ""), choices)
        if kind in _DECISIONS and any(other in seen for other in _DECISIONS if other != kind):
            yield bad_value(path, kind, "Approved and Denied conditions are mutually exclusive")
        yield from unique(f"{path}[{index}].type", kind, seen)
    for kind in _LASTING:
        if _conditions(old, kind) and kind not in seen:
            yield forbidden(path, f'updates may not remove a condition of type "{kind}"')
