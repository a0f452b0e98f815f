"""Signed tokens: every kind of key signs what it verifies, and a token has one form only."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from podlife.pki.jwt import (
    InvalidTokenError,
    load_signing_key,
    load_verification_keys,
    make_signing_key,
    read_unverified,
    verify,
)

CLAIMS = {"iss": "me", "sub": "é"}
KEYS: dict[str, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "RS256": rsa.generate_private_key(65537, 2048),
}


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("algorithm", KEYS)
def test_key_verifies_what_it_signed_and_is_published(algorithm: str) -> None:
    key = KEYS[algorithm]
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    [verifying] = load_verification_keys(public)

    token = load_signing_key(private_pem(key)).sign(dict(CLAIMS))

    assert verify(token, {verifying.id: verifying}) == CLAIMS == read_unverified(token)
    assert verifying.to_jwk()["alg"] == verifying.algorithm == algorithm
    # The members by which RFC 7517 identifies a key have no padding.
    assert all("=" not in value for value in verifying.to_jwk().values())


def test_file_may_hold_several_keys_of_any_form() -> None:
    first, second = KEYS["ES256"], KEYS["RS256"]
    text = private_pem(first) + second.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )

    assert [each.algorithm for each in load_verification_keys(b"words\n" + text)] == ["ES256", "RS256"]


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----", b"\xff"])
def test_file_without_a_key_is_an_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match="does not contain"):
        load_verification_keys(pem)
    with pytest.raises(ValueError, match="does not contain"):
        load_signing_key(pem)


def test_key_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="must be RSA, or ECDSA"):
        load_signing_key(private_pem(ed25519.Ed25519PrivateKey.generate()))


def test_second_form_of_a_signature_is_refused() -> None:
    """The last character of base64 has bits that mean nothing: a token must not be valid in several forms."""
    key = load_signing_key(make_signing_key())
    token = key.sign(dict(CLAIMS))
    other = token[:-1] + chr(ord(token[-1]) + 1)

    for forged in (other, f"{token}=", token + "A", token.replace(".", "..", 1)):
        with pytest.raises(InvalidTokenError):
            verify(forged, {key.public.id: key.public})


def test_token_with_a_critical_extension_is_refused() -> None:
    key = load_signing_key(make_signing_key())
    header = {"alg": "ES256", "crit": ["exp"]}
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    text = f"{head}.{key.sign(dict(CLAIMS)).split('.')[1]}"
    signature = base64.urlsafe_b64encode(key._signature(text.encode())).rstrip(b"=").decode()

    with pytest.raises(InvalidTokenError):
        verify(f"{text}.{signature}", {key.public.id: key.public})


def test_token_of_an_unknown_key_names_no_secret() -> None:
    token = load_signing_key(make_signing_key()).sign(dict(CLAIMS))

    with pytest.raises(InvalidTokenError, match=r"^invalid signature, no keys found$"):
        verify(token, {})
