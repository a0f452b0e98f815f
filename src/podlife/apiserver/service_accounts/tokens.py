"""Issues tokens of service accounts, and authenticates their bearers.

A token is bound to its account and, if asked, to a pod, a secret or a node: it is worth nothing once one of them is
gone or has another UID, which is read from the store on every request. Only the signature is remembered, for a bounded
number of tokens. Tokens of secrets (`kubernetes.io/service-account-token`) have no end; they must be the secret's own.
The messages are upstream's.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata, MetadataOnly
from podlife.apiserver.authn import Authenticated, UserInfo
from podlife.apiserver.service_accounts.keys import ServiceAccountKeys
from podlife.apiserver.storage import Key, Store
from podlife.clock import Clock
from podlife.errors import UnauthorizedError
from podlife.lru import LruCache

if TYPE_CHECKING:
    from podlife.pki.jwt import VerificationKey

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
# A pod's own token: it is renewed in time, and accepted much longer so that clients that never read it again go on.
POD_TOKEN_SECONDS = 3607
_EXTENDED_SECONDS = 365 * 24 * 3600
_LEEWAY = timedelta(minutes=1)
# Upstream's are below 2 KB.
_LONGEST_TOKEN = 16 * 1024
_MOST_VERIFIED = 4096
_EXTRA = "authentication.kubernetes.io/"
_LEGACY = "kubernetes.io/serviceaccount/"
_LEGACY_CLAIMS = {
    "namespace": "namespace",
    "secret.name": "secretName",
    "service-account.name": "serviceAccountName",
    "service-account.uid": "serviceAccountUID",
}
_INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
_INVALIDATED = "service account token has been invalidated"


_Extra = tuple[tuple[str, tuple[str, ...]], ...]


class _LabelledMetadata(Metadata, rename="camel", gc=False):
    labels: dict[str, str] = {}


class _Secret(msgspec.Struct, gc=False):
    metadata: _LabelledMetadata
    data: dict[str, str] = {}


_read_metadata = msgspec.json.Decoder(MetadataOnly).decode
_read_secret = msgspec.json.Decoder(_Secret).decode


@dataclass(frozen=True, slots=True)
class BoundObjects:
    """The metadata of what a token is bound to. The node of a pod may have a name only."""

    pod: Object | None = None
    secret: Object | None = None
    node: Object | None = None


class ServiceAccountTokens:
    """`issuer` is also the audience of tokens that ask for none: this server. If it is empty, the issuer is the URL of
    the server: pods resolve no names of the cluster."""

    def __init__(
        self, store: Store, clock: Clock, keys: ServiceAccountKeys, *, issuer: str = DEFAULT_ISSUER
    ) -> None:
        self.keys = keys
        # Known once the server listens.
        self.server_url = ""
        self._issuer = issuer
        self._store = store
        self._clock = clock
        self._verified: LruCache[bytes, Object] = LruCache(_MOST_VERIFIED)
        self._verified_with: Mapping[str, VerificationKey] | None = None

    @property
    def issuer(self) -> str:
        return self._issuer or self.server_url

    @property
    def audiences(self) -> tuple[str, ...]:
        return (self.issuer,)

    def issue(
        self, account: Object, bound: BoundObjects, audiences: Sequence[str], seconds: int
    ) -> tuple[str, str]:
        """Return a token for the account of this metadata, and the token's ID."""
        now = int(self._clock.now().timestamp())
        refs = {field: getattr(bound, field) for field in ("node", "pod", "secret")} | {
            "serviceaccount": account
        }
        kubernetes: Object = {"namespace": account["namespace"]}
        kubernetes |= {
            field: {part: each[part] for part in ("name", "uid") if each.get(part)}
            for field, each in refs.items()
            if each is not None
        }
        if bound.pod is not None and seconds == POD_TOKEN_SECONDS and set(audiences) <= {self.issuer}:
            kubernetes["warnafter"] = now + seconds
            seconds = _EXTENDED_SECONDS
        identity = str(uuid4())
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": identity,
            "kubernetes.io": kubernetes,
            "nbf": now,
            "sub": f"system:serviceaccount:{account['namespace']}:{account['name']}",
        }
        return self.keys.signing.sign(claims), identity

    def authenticate(self, token: str, audiences: Sequence[str]) -> Authenticated | None:
        """Return the account that a token belongs to, and those of the audiences that it is for; None if this server
        did not issue it. Raises UnauthorizedError with the reason if it is worth nothing, or not any more."""
        from podlife.pki.jwt import InvalidTokenError, read_unverified

        if len(token) > _LONGEST_TOKEN or token.count(".") != 2 or not token.isascii():
            return None
        issuer = (read_unverified(token) or {}).get("iss")
        if issuer not in (self.issuer, LEGACY_ISSUER):
            return None
        try:
            claims = self._verify(token)
        except InvalidTokenError as error:
            _refuse(str(error))
        wanted = _audiences(claims) or self.audiences
        common = tuple(each for each in wanted if each in audiences)
        if not common:
            shown, target = (
                "[" + " ".join(f'"{each}"' for each in some) + "]" for some in (wanted, audiences)
            )
            _refuse(f"token audiences {shown} is invalid for the target audiences {target}")
        try:
            user = self._legacy(claims, token) if issuer == LEGACY_ISSUER else self._bound(claims)
        except (ArithmeticError, AttributeError, KeyError, OSError, TypeError, ValueError):
            # Signed with our key, but by another program.
            _refuse("service account token claims could not be validated due to unexpected validation error")
        return Authenticated(user.authenticated(), common)

    def _verify(self, token: str) -> Object:
        from podlife.pki.jwt import verify

        keys = self.keys.public
        if keys is not self._verified_with:
            self._verified, self._verified_with = LruCache(_MOST_VERIFIED), keys
        digest = sha256(token.encode()).digest()
        claims = self._verified.get(digest)
        if claims is None:
            claims = verify(token, dict(keys))
            self._verified.put(digest, claims)
        return claims

    def _bound(self, claims: Object) -> UserInfo:
        now = self._clock.now()
        _check_times(claims, now)
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        found = self._metadata("serviceaccounts", namespace, account["name"])
        if found is None:
            _refuse(f'serviceaccounts "{account["name"]}" not found')
        if found.uid != account["uid"]:
            _refuse(f"service account UID ({found.uid}) does not match claim ({account['uid']})")
        if _is_gone(found, now):
            _refuse(f"service account {namespace}/{account['name']} has been deleted")
        for kind, where in (("secret", namespace), ("pod", namespace), ("node", "")):
            # The node of a pod is only mentioned.
            if (ref := about.get(kind)) is not None and (kind != "node" or "pod" not in about):
                self._check_object(kind, where, ref, now)
        return _user(namespace, account["name"], account["uid"], _extra(claims, about))

    def _check_object(self, kind: str, namespace: str, ref: Mapping[str, str], now: datetime) -> None:
        found = self._metadata(f"{kind}s", namespace, ref["name"])
        if found is None:
            _refuse(_INVALIDATED)
        if found.uid != ref["uid"]:
            _refuse(
                f"{kind} UID ({found.uid}) does not match service account {kind} ref claim ({ref['uid']})"
            )
        if _is_gone(found, now):
            _refuse(_INVALIDATED)

    def _legacy(self, claims: Object, token: str) -> UserInfo:
        if not claims.get("sub"):
            _refuse("sub claim is missing")
        values = {}
        for claim, title in _LEGACY_CLAIMS.items():
            if not (value := claims.get(f"{_LEGACY}{claim}")):
                _refuse(f"{title} claim is missing")
            values[claim] = str(value)
        namespace, name = values["namespace"], values["service-account.name"]
        if claims["sub"] != f"system:serviceaccount:{namespace}:{name}":
            _refuse("sub claim is invalid")
        record = self._store.get(Key("secrets", namespace, values["secret.name"]))
        secret = None if record is None else _read_secret(record.value)
        if secret is None or secret.metadata.deletion_timestamp is not None:
            _refuse("Token has been invalidated")
        if not compare_digest(b64decode(secret.data.get("token", "")), token.encode()):
            _refuse("Token does not match server's copy")
        account = self._metadata("serviceaccounts", namespace, name)
        if account is None:
            _refuse(f'serviceaccounts "{name}" not found')
        if account.deletion_timestamp is not None:
            _refuse(f"ServiceAccount {namespace}/{name} has been deleted")
        uid = values["service-account.uid"]
        if account.uid != uid:
            _refuse(f"ServiceAccount UID ({account.uid}) does not match claim ({uid})")
        if secret.metadata.labels.get(_INVALID_SINCE):
            _refuse(
                f"the token in secret {namespace}/{values['secret.name']} for service account {namespace}/{name} has "
                "been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, "
                f"or remove the '{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        return _user(namespace, name, uid)

    def _metadata(self, resource: str, namespace: str, name: str) -> Metadata | None:
        record = self._store.get(Key(resource, namespace, name))
        return None if record is None else _read_metadata(record.value).metadata


def _user(namespace: str, name: str, uid: str, extra: _Extra = ()) -> UserInfo:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra)


def _extra(claims: Object, about: Object) -> _Extra:
    pod, node = about.get("pod") or {}, about.get("node") or {}
    extra = {
        "credential-id": f"JTI={claims['jti']}" if claims.get("jti") else "",
        "node-name": node.get("name"),
        "node-uid": node.get("uid"),
        "pod-name": pod.get("name"),
        "pod-uid": pod.get("uid"),
    }
    return tuple((f"{_EXTRA}{name}", (value,)) for name, value in extra.items() if value)


def _audiences(claims: Object) -> tuple[str, ...]:
    given = claims.get("aud") or []
    if not isinstance(given, str | list):
        _refuse("malformed token")
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def _check_times(claims: Object, now: datetime) -> None:
    def claimed(name: str) -> Any:
        return now if claims.get(name) is None else datetime.fromtimestamp(claims[name], now.tzinfo)

    if now + _LEEWAY < claimed("nbf"):
        _refuse("service account token is not valid yet")
    if now - _LEEWAY > claimed("exp"):
        _refuse("service account token has expired")
    if now + _LEEWAY < claimed("iat"):
        _refuse("service account token is issued in the future")


def _is_gone(metadata: Metadata, now: datetime) -> bool:
    return metadata.deletion_timestamp is not None and metadata.deletion_timestamp < now - _LEEWAY


def _refuse(reason: str) -> NoReturn:
    raise UnauthorizedError(reason)
