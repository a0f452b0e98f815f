"""Named formats of Kubernetes' CEL library: `format.dns1123Label().validate(name)`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.library.kubernetes_values import parse_url
from podlife.api.cel.times import parse_timestamp
from podlife.api.cel.values import NONE, Meter, Optional
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key, check_label_value

_DNS_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
).fullmatch


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    check: Callable[[str], list[str]]
    # Upstream charges a validation as a match with a pattern of this length.
    regex_size: int

    type_name: ClassVar[str] = "kubernetes.NamedFormat"
    has_unit_equality: ClassVar[bool] = True


def _dns_1035(text: str, *, prefix: bool = False) -> list[str]:
    if prefix and len(text) > 1 and text.endswith("-"):
        text = text[:-2] + "a"
    problems = ["must be no more than 63 characters"] if len(text.encode()) > 63 else []
    if not re.fullmatch(_DNS_1035, text, re.ASCII):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        problems.append(f"{rule} (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_DNS_1035}')")
    return problems


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except ValueError as error:
        return [str(error)]
    return []


def _base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0 and bool(text)


def _time(text: str) -> bool:
    try:
        parse_timestamp(text)
    except (ValueError, EvaluationError):
        return False
    return True


def _date(text: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII)) and _time(f"{text}T00:00:00Z")


def _holds(test: Callable[[str], Any], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if test(text) else [problem]


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", check_dns_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", check_dns_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", _dns_1035, 30),
    "qualifiedName": Format("QualifiedName", check_label_key, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", lambda text: check_dns_label(text, prefix=True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", lambda text: check_dns_subdomain(text, prefix=True), 60
    ),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", lambda text: _dns_1035(text, prefix=True), 30),
    "labelValue": Format("LabelValue", check_label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _holds(_UUID, "does not match the UUID format"), 71),
    "byte": Format("byte", _holds(_base64, "invalid base64"), 83),
    "date": Format("date", _holds(_date, "invalid date"), 71),
    "datetime": Format("datetime", _holds(_time, "invalid datetime"), 71),
}


def _validate(_meter: Meter, named: Format, text: str) -> Optional:
    problems = named.check(text)
    return Optional(True, problems) if problems else NONE


def _named(_meter: Meter, name: str) -> Optional:
    return Optional(True, _FORMATS[name]) if name in _FORMATS else NONE


def _constant(value: Format) -> Callable[[Meter], Format]:
    return lambda _meter: value


FORMATS: dict[str, Callable[..., Any]] = {
    **{f"format.{name}": _constant(value) for name, value in _FORMATS.items()},
    "format.named": _named,
    "validate": _validate,
}
