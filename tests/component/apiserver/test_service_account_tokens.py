"""Tokens of service accounts: who gets one, what it says, whom it authenticates, and when it is worth nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.service_accounts import DEFAULT_ISSUER, ServiceAccountKeys, ServiceAccountTokens
from podlife.apiserver.storage import MemoryStore
from podlife.pki.jwt import load_signing_key, make_signing_key, read_unverified
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Peer, Query, Request
from tests.component.apiserver.requests import PODS, ask

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN = f"{ACCOUNTS}/robot/token"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NODE = Peer("system:node:n", ("system:nodes",))


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i"}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


async def serve(folder: Path, *more: Path, needs_accounts: bool = False) -> ApiHandler:
    store, clock = MemoryStore(), LoopClock()
    tokens = ServiceAccountTokens(store, clock, ServiceAccountKeys(folder / "pki/sa.key", more, creates=True))
    handler = assemble(
        store,
        clock=clock,
        authenticator=Authenticator(service_accounts=tokens),
        service_accounts=tokens,
        needs_accounts=needs_accounts,
    )
    await create_system_namespaces(handler.registry, ADMIN)
    await ask(handler, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    return handler


async def issue(handler: ApiHandler, **spec: Any) -> str:
    code, answer = await ask(handler, "POST", TOKEN, {"spec": spec})
    assert code == 201, answer
    return str(answer["status"]["token"])


async def who(handler: ApiHandler, token: str) -> tuple[int, Any]:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = await handler(Request("POST", path, Query(""), headers, b"{}"))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body)


async def review(handler: ApiHandler, token: str, **spec: Any) -> dict[str, Any]:
    code, answer = await ask(handler, "POST", REVIEWS, {"spec": {"token": token, **spec}})
    assert code == 201, answer
    status: dict[str, Any] = answer["status"]
    if error := status.get("error", ""):
        status["error"] = error.removeprefix("[invalid bearer token, ").removesuffix("]")
    return status


async def bound_to_pod(handler: ApiHandler) -> str:
    await ask(handler, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    code, made = await ask(handler, "POST", PODS, pod(serviceAccountName="robot", nodeName="n"))
    assert code == 201, made
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    return await issue(handler, boundObjectRef=ref)


@virtual_time
async def test_token_of_a_pod_names_account_pod_and_node(tmp_path: Path) -> None:
    handler = await serve(tmp_path)

    token = await bound_to_pod(handler)

    code, answer = await who(handler, token)
    claims = read_unverified(token)
    assert code == 201
    assert claims is not None
    about, user = claims["kubernetes.io"], answer["status"]["userInfo"]
    assert user["username"] == claims["sub"] == "system:serviceaccount:default:robot"
    assert user["uid"] == about["serviceaccount"]["uid"]
    assert user["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    assert user["extra"] == {
        "authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"],
        "authentication.kubernetes.io/node-name": ["n"],
        "authentication.kubernetes.io/node-uid": [about["node"]["uid"]],
        "authentication.kubernetes.io/pod-name": ["p"],
        "authentication.kubernetes.io/pod-uid": [about["pod"]["uid"]],
    }
    assert (claims["aud"], claims["exp"] - claims["iat"]) == ([DEFAULT_ISSUER], 3600)
    assert (tmp_path / "pki/sa.key").stat().st_mode & 0o777 == 0o600


@virtual_time
async def test_token_of_a_deleted_pod_is_refused_at_once(tmp_path: Path) -> None:
    handler = await serve(tmp_path)
    token = await bound_to_pod(handler)
    assert (await who(handler, token))[0] == 201

    await ask(handler, "DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})

    assert (await who(handler, token))[0] == 401
    assert (await review(handler, token))["error"] == "service account token has been invalidated"
    # Another pod of the name is another pod.
    _, again = await ask(handler, "POST", PODS, pod(serviceAccountName="robot"))
    error = (await review(handler, token))["error"]
    assert error.startswith(
        f"pod UID ({again['metadata']['uid']}) does not match service account pod ref claim ("
    )


@virtual_time
async def test_token_of_an_account_that_was_made_again_is_refused(tmp_path: Path) -> None:
    handler = await serve(tmp_path)
    token = await issue(handler)
    await ask(handler, "DELETE", f"{ACCOUNTS}/robot")

    assert (await review(handler, token))["error"] == 'serviceaccounts "robot" not found'
    await ask(handler, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})

    assert (await review(handler, token))["error"].startswith("service account UID (")
    assert (await who(handler, token))[0] == 401


@virtual_time
async def test_expired_token_is_refused_after_the_leeway(tmp_path: Path) -> None:
    import asyncio

    handler = await serve(tmp_path)
    token = await issue(handler, expirationSeconds=600)

    await asyncio.sleep(655)
    assert (await who(handler, token))[0] == 201
    await asyncio.sleep(10)

    assert (await who(handler, token))[0] == 401
    assert (await review(handler, token))["error"] == "service account token has expired"


@virtual_time
async def test_token_for_another_audience_is_only_for_that_one(tmp_path: Path) -> None:
    handler = await serve(tmp_path)
    token = await issue(handler, audiences=["vault", "x"])

    assert (await who(handler, token))[0] == 401
    found = await review(handler, token, audiences=["vault", "other"])
    assert (found["authenticated"], found["audiences"]) == (True, ["vault"])
    assert (await review(handler, token))["error"] == (
        f'token audiences ["vault" "x"] is invalid for the target audiences ["{DEFAULT_ISSUER}"]'
    )


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(token: str, public: bytes) -> str:
    return f"{part({'alg': 'none'})}.{token.split('.')[1]}."


def signed_with_the_public_key(token: str, public: bytes) -> str:
    text = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{token.split('.')[1]}"
    return f"{text}.{part(hmac.digest(public, text.encode(), hashlib.sha256))}"


def signed_by_another(token: str, public: bytes) -> str:
    return load_signing_key(make_signing_key()).sign(read_unverified(token) or {})


def with_other_claims(token: str, public: bytes) -> str:
    head, _, signature = token.split(".")
    claims = {**(read_unverified(token) or {}), "sub": "system:serviceaccount:kube-system:admin"}
    return f"{head}.{part(claims)}.{signature}"


@pytest.mark.parametrize(
    "forge", [unsigned, signed_with_the_public_key, signed_by_another, with_other_claims]
)
@virtual_time
async def test_forged_token_is_refused(forge: Callable[[str, bytes], str], tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    handler = await serve(tmp_path)
    token = await issue(handler)
    assert handler.service_accounts is not None
    [key] = handler.service_accounts.keys.public.values()
    forged = forge(token, key.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    assert (await who(handler, forged))[0] == 401
    assert "authenticated" not in await review(handler, forged)
    assert (await who(handler, token))[0] == 201


@pytest.mark.parametrize(
    "token",
    ["x", "a.b.c", "..", f"{part({})}.{part({'iss': DEFAULT_ISSUER})}.!", "é.é.é", f"a.{'b' * 2_000_000}.c"],
    ids=["word", "no base64", "empty", "no signature", "no ASCII", "huge"],
)
@virtual_time
async def test_what_is_no_token_is_refused(token: str, tmp_path: Path) -> None:
    handler = await serve(tmp_path)

    assert (await who(handler, token))[0] == 401
    assert "error" in await review(handler, token)


@virtual_time
async def test_replaced_key_verifies_its_tokens_as_long_as_it_is_listed(tmp_path: Path) -> None:
    old, key_file = tmp_path / "old.pem", tmp_path / "pki/sa.key"
    old.write_bytes(make_signing_key())
    handler = await serve(tmp_path, old)
    before = await issue(handler)

    old.write_bytes(key_file.read_bytes())
    key_file.write_bytes(make_signing_key())
    after = await issue(handler)

    assert [(await who(handler, each))[0] for each in (before, after)] == [201, 201]
    _, keys = await ask(handler, "GET", "/openid/v1/jwks")
    assert len(keys["keys"]) == 2
    old.write_bytes(make_signing_key())
    assert [(await who(handler, each))[0] for each in (before, after)] == [401, 201]
    # A file that is half written changes nothing.
    key_file.write_bytes(b"-----BEGIN")
    assert (await who(handler, after))[0] == 201


@virtual_time
async def test_discovery_says_how_to_verify_a_token(tmp_path: Path) -> None:
    handler = await serve(tmp_path)
    token = await issue(handler)

    _, document = await ask(handler, "GET", "/.well-known/openid-configuration")
    _, keys = await ask(handler, "GET", "/openid/v1/jwks")

    head = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert document["issuer"] == DEFAULT_ISSUER
    assert document["id_token_signing_alg_values_supported"] == ["ES256"]
    assert [(key["kid"], key["kty"], key["crv"]) for key in keys["keys"]] == [(head["kid"], "EC", "P-256")]


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": (1 << 32) + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}}, 404, 'pods "q" not found'),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "q"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
        (
            {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u"}},
            409,
            "the UID in the bound object reference (u) does not match the UID in record",
        ),
    ],
)
@virtual_time
async def test_invalid_request_gets_no_token(
    spec: dict[str, Any], code: int, message: str, tmp_path: Path
) -> None:
    handler = await serve(tmp_path)
    await ask(handler, "POST", PODS, pod(serviceAccountName="other"))
    await ask(handler, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})

    status, answer = await ask(handler, "POST", TOKEN, {"spec": spec})

    assert (status, message in answer["message"]) == (code, True), answer


@virtual_time
async def test_node_gets_tokens_of_its_own_pods_only(tmp_path: Path) -> None:
    handler = await serve(tmp_path)
    token_source = {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}
    volumes = [{"name": "v", "projected": token_source}]
    uids = {}
    for name, node in (("own", "n"), ("foreign", "m")):
        made = pod(serviceAccountName="robot", nodeName=node, volumes=volumes)
        made["metadata"]["name"] = name
        uids[name] = (await ask(handler, "POST", PODS, made))[1]["metadata"]["uid"]

    async def request(name: str, audience: str, uid: str | None = None) -> tuple[int, str]:
        ref = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uids[name] if uid is None else uid}
        spec = {"audiences": [audience], "boundObjectRef": ref}
        code, answer = await ask(handler, "POST", TOKEN, {"spec": spec}, peer=NODE)
        return code, answer.get("message", "")

    assert await request("own", "vault") == (201, "")
    for asked, message in (
        (("foreign", "vault"), "node requested token bound to a pod scheduled on a different node"),
        (("own", "other"), 'audience "other" not found in pod spec volume, system:node:n is not authorized'),
        (("own", "vault", ""), "node requested token with a pod binding without a uid"),
        (("own", "vault", "u"), "the UID in the bound object reference (u) does not match"),
    ):
        code, text = await request(*asked)
        assert (code, message in text) == (403, True), text
    code, answer = await ask(handler, "POST", TOKEN, {"spec": {}}, peer=NODE)
    assert (code, "node requested token not bound to a pod" in answer["message"]) == (403, True)


@virtual_time
async def test_pod_without_an_account_is_forbidden_and_others_get_its_token(tmp_path: Path) -> None:
    handler = await serve(tmp_path, needs_accounts=True)

    code, answer = await ask(handler, "POST", PODS, pod())
    assert (code, answer["message"]) == (
        403,
        'pods "p" is forbidden: error looking up service account default/default: serviceaccount "default" not found',
    )
    code, made = await ask(handler, "POST", PODS, pod(serviceAccountName="robot"))

    assert code == 201
    [volume], [container] = made["spec"]["volumes"], made["spec"]["containers"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        *("serviceAccountToken", "configMap", "downwardAPI")
    ]
    assert container["volumeMounts"] == [
        {
            "name": volume["name"],
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }
    ]


@pytest.mark.parametrize(
    ("account", "spec", "is_mounted"),
    [
        (None, None, True),
        (False, None, False),
        (False, True, True),
        (True, False, False),
    ],
)
@virtual_time
async def test_pod_and_then_account_decide_about_the_mount(
    account: bool | None, spec: bool | None, is_mounted: bool, tmp_path: Path
) -> None:
    handler = await serve(tmp_path, needs_accounts=True)
    chosen = {"automountServiceAccountToken": account, "imagePullSecrets": [{"name": "pull"}]}
    await ask(handler, "POST", ACCOUNTS, {"metadata": {"name": "default"}, **chosen})

    code, made = await ask(handler, "POST", PODS, pod(automountServiceAccountToken=spec))

    assert code == 201, made
    assert ("volumes" in made["spec"]) == is_mounted
    assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "default"
    assert made["spec"]["imagePullSecrets"] == [{"name": "pull"}]


@virtual_time
async def test_account_that_names_its_secrets_allows_no_others(tmp_path: Path) -> None:
    handler = await serve(tmp_path, needs_accounts=True)
    limited = {
        "metadata": {"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "own"}],
    }
    await ask(handler, "POST", ACCOUNTS, limited)

    def volumes(name: str) -> list[Any]:
        return [{"name": "v", "secret": {"secretName": name}}]

    code, answer = await ask(handler, "POST", PODS, pod(volumes=volumes("foreign")))
    assert code == 403
    assert answer["message"] == (
        'pods "p" is forbidden: volume with secret.secretName="foreign" is not allowed because service account '
        "default does not reference that secret"
    )
    assert (await ask(handler, "POST", PODS, pod(volumes=volumes("own"))))[0] == 201


@virtual_time
async def test_mirror_pod_gets_no_token_and_names_no_account(tmp_path: Path) -> None:
    handler = await serve(tmp_path, needs_accounts=True)
    mirror = pod(nodeName="n")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "h"}

    mirror["spec"]["serviceAccountName"] = "robot"
    code, answer = await ask(handler, "POST", PODS, mirror)
    assert (code, "a mirror pod may not reference service accounts" in answer["message"]) == (403, True)
    del mirror["spec"]["serviceAccountName"]
    code, made = await ask(handler, "POST", PODS, mirror)

    assert code == 201, made
    assert "volumes" not in made["spec"]
