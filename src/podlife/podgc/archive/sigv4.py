"""AWS Signature Version 4 for S3. Pure.

The canonical form of a request, its hash, a key derived from the secret for one day, region and service, and the MAC of
the one with the other. S3 takes the path as it is, each byte outside the unreserved ones encoded once.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "s3"


@dataclass(frozen=True, slots=True)
class Keys:
    access: str
    secret: str = field(repr=False)
    # Of credentials that were lent for a while.
    session: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Signable:
    """A request to sign. `path` and `query` are not encoded yet; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def encoded_path(path: str) -> str:
    return quote(path, safe="/-._~")


def encoded_query(query: Mapping[str, str]) -> str:
    pairs = sorted((quote(name, safe="-._~"), quote(value, safe="-._~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed_headers(request: Signable, keys: Keys, region: str, now: datetime) -> dict[str, str]:
    """All headers of the request, including the signature."""
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    content = hashlib.sha256(request.body).hexdigest()
    headers = {**request.headers, "x-amz-content-sha256": content, "x-amz-date": moment}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    names = ";".join(sorted(headers))
    scope = f"{moment[:8]}/{region}/{_SERVICE}/aws4_request"
    hashed = hashlib.sha256(_canonical(request, headers, content).encode()).hexdigest()
    signature = _mac(
        _key(keys.secret, moment[:8], region), f"{_ALGORITHM}\n{moment}\n{scope}\n{hashed}"
    ).hex()
    proof = f"Credential={keys.access}/{scope},SignedHeaders={names},Signature={signature}"
    return {**headers, "authorization": f"{_ALGORITHM} {proof}"}


def _canonical(request: Signable, headers: Mapping[str, str], content: str) -> str:
    lines = [f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers)]
    return "\n".join(
        (
            request.method,
            encoded_path(request.path),
            encoded_query(request.query),
            "".join(lines),
            ";".join(sorted(headers)),
            content,
        )
    )


def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, _SERVICE, "aws4_request"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
