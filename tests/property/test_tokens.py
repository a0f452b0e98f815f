"""A token that nobody issued is refused in one way, whatever it is made of."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podlife.apiserver.authn import Authenticator, TokenFile
from podlife.apiserver.service_accounts import ServiceAccountKeys, ServiceAccountTokens
from podlife.apiserver.service_accounts.tokens import DEFAULT_ISSUER, LEGACY_ISSUER
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from podlife.errors import UnauthorizedError
from podlife.wire import Request

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
HEADERS = st.fixed_dictionaries(
    {}, optional={"alg": st.sampled_from(["ES256", "none"]) | VALUES, "kid": VALUES, "crit": VALUES}
)
ABOUT = st.fixed_dictionaries({"namespace": VALUES}, optional={"serviceaccount": VALUES, "pod": VALUES})
CLAIMS = st.fixed_dictionaries(
    {"iss": st.sampled_from([DEFAULT_ISSUER, LEGACY_ISSUER]) | VALUES},
    optional={"aud": VALUES, "exp": VALUES, "nbf": VALUES, "sub": VALUES, "kubernetes.io": ABOUT | VALUES},
)
OWN = {"iss": DEFAULT_ISSUER}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> ServiceAccountTokens:
    keys = ServiceAccountKeys(tmp_path_factory.mktemp("pki") / "sa.key", creates=True)
    return ServiceAccountTokens(MemoryStore(), SystemClock(), keys)


def _part(value: Any) -> bytes:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")


def _is_refused(tokens: ServiceAccountTokens, token: bytes) -> bool:
    header = (b"Bearer " + token).decode("utf-8", "surrogateescape")
    authenticator = Authenticator(TokenFile(Path("/none")), tokens)
    with pytest.raises(UnauthorizedError, match=r"^Unauthorized$"):
        authenticator.authenticate(Request("GET", "/api", headers={"Authorization": header}))
    return True


@given(HEADERS | VALUES, CLAIMS | VALUES, st.binary(max_size=40) | st.just(b"AA"))
@example({"alg": "ES256", "kid": []}, OWN, b"AA")
@example({"alg": "ES256", "kid": {}}, OWN, b"AA")
@example({"alg": "ES256"}, OWN, b"\xff")
def test_made_up_token_is_unauthorized(
    tokens: ServiceAccountTokens, header: Any, claims: Any, signature: bytes
) -> None:
    assert _is_refused(tokens, b".".join((_part(header), _part(claims), signature)))


@given(CLAIMS)
@example({**OWN, "aud": 5})
@example({**OWN, "aud": [{}]})
def test_signed_token_with_odd_claims_is_unauthorized(
    tokens: ServiceAccountTokens, claims: dict[str, Any]
) -> None:
    assert _is_refused(tokens, tokens.keys.signing.sign(claims).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_unauthorized(tokens: ServiceAccountTokens, token: bytes) -> None:
    assert _is_refused(tokens, token)
