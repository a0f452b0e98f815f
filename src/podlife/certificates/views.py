"""View of a CertificateSigningRequest."""

from __future__ import annotations

from datetime import datetime

import msgspec

from podlife.api.views import Condition, Metadata


class RequestCondition(Condition, rename="camel", gc=False):
    last_update_time: datetime | None = None


class RequestSpec(msgspec.Struct, rename="camel"):
    request: str = ""
    signer_name: str = ""
    usages: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    username: str = ""


class RequestStatus(msgspec.Struct):
    conditions: tuple[RequestCondition, ...] = ()
    certificate: str = ""


class SigningRequest(msgspec.Struct):
    metadata: Metadata
    spec: RequestSpec = msgspec.field(default_factory=RequestSpec)
    status: RequestStatus = msgspec.field(default_factory=RequestStatus)

    def has(self, type_: str) -> bool:
        return any(each.type == type_ and each.status == "True" for each in self.status.conditions)
