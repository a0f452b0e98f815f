"""OpenID Connect discovery: how others verify the tokens of service accounts without asking this server."""

from __future__ import annotations

from podlife.api.codec import encode
from podlife.apiserver.service_accounts import ServiceAccountTokens
from podlife.wire import Request, Response

_CONFIGURATION = "/.well-known/openid-configuration"
_KEY_SET = "/openid/v1/jwks"
_HEADERS = {"Cache-Control": "public, max-age=3600"}


def answer(request: Request, tokens: ServiceAccountTokens | None) -> Response | None:
    """None for any other path, or if no tokens are issued."""
    if tokens is None or request.method != "GET" or request.path not in (_CONFIGURATION, _KEY_SET):
        return None
    keys = [key.to_jwk() for key in tokens.keys.public.values()]
    if request.path == _KEY_SET:
        return Response(200, encode({"keys": keys}), "application/jwk-set+json", _HEADERS)
    document = {
        "issuer": tokens.issuer,
        "jwks_uri": f"{tokens.server_url or tokens.issuer}{_KEY_SET}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key["alg"] for key in keys}),
    }
    return Response(200, encode(document), headers=_HEADERS)
