"""Signed tokens (JWT, RFC 7519) of service accounts, and the keys that sign and verify them.

Keys are EC (ES256, ES384, ES512) or RSA (RS256), as kube-apiserver accepts them. A token is verified only by the
algorithm of the key itself: what its header claims is compared, never obeyed, so that neither `none` nor an HMAC with a
public key as secret is believed. Like `certificates`, it loads `cryptography`: import it inside functions.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from podlife.api.codec import Object, decode_object, encode

# By curve: the algorithm, its hash, and the bytes of one coordinate.
_CURVES: dict[str, tuple[str, hashes.HashAlgorithm, int]] = {
    "secp256r1": ("ES256", hashes.SHA256(), 32),
    "secp384r1": ("ES384", hashes.SHA384(), 48),
    "secp521r1": ("ES512", hashes.SHA512(), 66),
}
_PEM = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)
_PKCS1 = padding.PKCS1v15()
_UNKNOWN = "unknown key type: must be RSA, or ECDSA with curve 256, 384 or 521"


class InvalidTokenError(ValueError):
    """No signed token, or not signed by a known key. The message never contains the token."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey

    @property
    def id(self) -> str:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return _base64(sha256(self.key.public_bytes(serialization.Encoding.DER, form)).digest())

    @property
    def algorithm(self) -> str:
        return _CURVES[self.key.curve.name][0] if isinstance(self.key, ec.EllipticCurvePublicKey) else "RS256"

    def verify(self, signature: bytes, data: bytes) -> None:
        """Raises InvalidSignature."""
        if isinstance(self.key, rsa.RSAPublicKey):
            self.key.verify(signature, data, _PKCS1, hashes.SHA256())
            return
        _, digest, size = _CURVES[self.key.curve.name]
        if len(signature) != 2 * size:
            raise InvalidSignature
        r, s = (int.from_bytes(half) for half in (signature[:size], signature[size:]))
        self.key.verify(encode_dss_signature(r, s), data, ec.ECDSA(digest))

    def to_jwk(self) -> Object:
        """The key in a JSON Web Key Set, its members in upstream's order."""
        common = {"use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm}
        if isinstance(self.key, rsa.RSAPublicKey):
            public = self.key.public_numbers()
            return {**common, "n": _base64(_number(public.n)), "e": _base64(_number(public.e))}
        size, point = _CURVES[self.key.curve.name][2], self.key.public_numbers()
        x, y = (_base64(each.to_bytes(size)) for each in (point.x, point.y))
        curve = f"P-{self.key.curve.key_size}"
        return {**common, "kty": "EC", "crv": curve, "x": x, "y": y}


@dataclass(frozen=True, slots=True)
class SigningKey:
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

    @property
    def public(self) -> VerificationKey:
        return VerificationKey(self.key.public_key())

    def sign(self, claims: Object) -> str:
        header = {"alg": self.public.algorithm, "kid": self.public.id}
        text = f"{_base64(encode(header))}.{_base64(encode(claims))}"
        return f"{text}.{_base64(self._signature(text.encode()))}"

    def _signature(self, data: bytes) -> bytes:
        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(data, _PKCS1, hashes.SHA256())
        _, digest, size = _CURVES[self.key.curve.name]
        r, s = decode_dss_signature(self.key.sign(data, ec.ECDSA(digest)))
        return r.to_bytes(size) + s.to_bytes(size)


def make_signing_key() -> bytes:
    """A new private key, PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def load_signing_key(pem: bytes) -> SigningKey:
    """Raises ValueError."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        raise ValueError("data does not contain a valid RSA or ECDSA private key") from None
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) and _is_known(key):
        return SigningKey(key)
    raise ValueError(_UNKNOWN)


def load_verification_keys(pem: bytes) -> list[VerificationKey]:
    """The public keys of a file, which may hold several, and private keys too. Raises ValueError."""
    keys = [_load_public(block[0], block[1]) for block in _PEM.finditer(pem)]
    if not keys:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return keys


def _load_public(block: bytes, label: bytes) -> VerificationKey:
    if label.endswith(b"PRIVATE KEY"):
        return load_signing_key(block).public
    try:
        key = serialization.load_pem_public_key(block)
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("data does not contain any valid RSA or ECDSA public keys") from None
    if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) and _is_known(key):
        return VerificationKey(key)
    raise ValueError(_UNKNOWN)


def _is_known(key: object) -> bool:
    return isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey) or (
        isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES
    )


def read_unverified(token: str) -> Object | None:
    """The claims of a token, which anyone may have made up; None if it is none."""
    parts = token.split(".")
    try:
        return decode_object(_decoded(parts[1])) if len(parts) == 3 else None
    except ValueError:
        return None


def verify(token: str, keys: dict[str, VerificationKey]) -> Object:
    """The claims of a token that one of these keys, by ID, has signed. Raises InvalidTokenError."""
    try:
        text, _, signature_text = token.rpartition(".")
        head, _, payload = text.partition(".")
        header, signature = decode_object(_decoded(head)), _decoded(signature_text)
        claims = decode_object(_decoded(payload))
    except ValueError:
        raise InvalidTokenError("malformed token") from None
    kid = header.get("kid")
    if not isinstance(kid, str | None):
        raise InvalidTokenError("malformed token")
    candidates = [keys[kid]] if kid in keys else [] if kid else list(keys.values())
    if not candidates:
        raise InvalidTokenError("invalid signature, no keys found")
    for key in candidates:
        # "crit" names extensions that a verifier must understand: there are none.
        if header.get("alg") != key.algorithm or "crit" in header:
            continue
        try:
            key.verify(signature, text.encode())
        except InvalidSignature:
            continue
        return claims
    raise InvalidTokenError("go-jose/go-jose: error in cryptographic primitive")


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    """Raises ValueError; strict, so that a token has one form only."""
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _base64(data) != text:
        raise ValueError("not base64url")
    return data


def _number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8)
