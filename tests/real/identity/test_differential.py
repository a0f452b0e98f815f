"""Tokens, their reviews and the admission of pods: each step gets the answer that kube-apiserver gives."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.kit.real_parts import Server, Settings, kube_apiserver, podlife_apiserver
from tests.real.conftest import require

ISSUER = "https://kubernetes.default.svc"
NAMESPACE = "/api/v1/namespaces/default"
ACCOUNTS, PODS = f"{NAMESPACE}/serviceaccounts", f"{NAMESPACE}/pods"
TOKEN = f"{ACCOUNTS}/robot/token"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
GENERATED = re.compile(r"\b(kube-api-access|g)-[a-z0-9]{5}\b")
MIRROR = {"kubernetes.io/config.mirror": "hash"}


class Step(NamedTuple):
    name: str
    path: str
    body: Any
    # The name of a user, or of a step whose token is used.
    user: str = "admin"
    method: str = "POST"


def account(name: str, **fields: Any) -> Any:
    return {"metadata": {"name": name}, **fields}


def pod(name: str, annotations: Any = None, **spec: Any) -> Any:
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}


def token(**spec: Any) -> Any:
    return {"spec": spec}


def bound(kind: str, name: str, **fields: str) -> Any:
    return token(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name, **fields})


def review(step: str, **spec: Any) -> Any:
    return {"spec": {"token": f"<{step}>", **spec}}


VAULT = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}
SECRET_ENV = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "foreign", "key": "k"}}}]
ENFORCED = {"kubernetes.io/enforce-mountable-secrets": "true"}

STEPS = (
    Step("account", ACCOUNTS, account("robot", imagePullSecrets=[{"name": "pull"}])),
    Step("quiet account", ACCOUNTS, account("quiet", automountServiceAccountToken=False)),
    Step(
        "limited account",
        ACCOUNTS,
        {"metadata": {"name": "limited", "annotations": ENFORCED}, "secrets": [{"name": "own"}]},
    ),
    Step("pod of no account", PODS, pod("p", serviceAccountName="nobody")),
    Step("pod", PODS, pod("p", serviceAccountName="robot", nodeName="node-a", volumes=[VAULT])),
    Step("generated pod", PODS, {**pod(""), "metadata": {"generateName": "g-"}}),
    Step(
        "pod with a mount",
        PODS,
        pod(
            "own",
            serviceAccountName="robot",
            volumes=[{"name": "e", "emptyDir": {}}],
            containers=[
                {
                    "name": "c",
                    "image": "i",
                    "volumeMounts": [
                        {"name": "e", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
                    ],
                }
            ],
        ),
    ),
    Step("quiet pod", PODS, pod("quiet", serviceAccountName="quiet")),
    Step("loud pod", PODS, pod("loud", serviceAccountName="quiet", automountServiceAccountToken=True)),
    Step(
        "pod with pull secrets",
        PODS,
        pod("pull", serviceAccountName="robot", imagePullSecrets=[{"name": "x"}]),
    ),
    Step(
        "limited pod, volume",
        PODS,
        pod("l", serviceAccountName="limited", volumes=[{"name": "s", "secret": {"secretName": "foreign"}}]),
    ),
    Step(
        "limited pod, env",
        PODS,
        pod("l", serviceAccountName="limited", containers=[{"name": "c", "image": "i", "env": SECRET_ENV}]),
    ),
    Step("limited pod, pull", PODS, pod("l", serviceAccountName="limited", imagePullSecrets=[{"name": "x"}])),
    Step("mirror pod", PODS, pod("m", MIRROR, nodeName="node-a")),
    Step(
        "mirror pod with an account", PODS, pod("m2", MIRROR, nodeName="node-a", serviceAccountName="robot")
    ),
    Step(
        "mirror pod with a secret",
        PODS,
        pod("m3", MIRROR, volumes=[{"name": "s", "secret": {"secretName": "x"}}]),
    ),
    Step("mirror pod with a token", PODS, pod("m4", MIRROR, volumes=[VAULT])),
    Step("token", TOKEN, token()),
    Step(
        "token with a type",
        TOKEN,
        {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": {"expirationSeconds": 7200},
        },
    ),
    Step("token for vault", TOKEN, token(audiences=["vault", "x"])),
    Step("token of the pod", TOKEN, bound("Pod", "p")),
    Step("long token of the pod", TOKEN, {"spec": {**bound("Pod", "p")["spec"], "expirationSeconds": 3607}}),
    Step("token of the node", TOKEN, bound("Node", "node-a")),
    # kube-apiserver remembers a valid token for ten seconds: these are not used before their objects are gone.
    Step("unused token", TOKEN, token()),
    Step("second unused token", TOKEN, token()),
    Step("unused token of the pod", TOKEN, bound("Pod", "p")),
    Step("second unused token of the pod", TOKEN, bound("Pod", "p")),
    Step("secret", f"{NAMESPACE}/secrets", account("s")),
    Step("token of the secret", TOKEN, bound("Secret", "s")),
    Step("too short", TOKEN, token(expirationSeconds=599)),
    Step("too long", TOKEN, token(expirationSeconds=(1 << 32) + 1)),
    Step("no such account", f"{ACCOUNTS}/nobody/token", token()),
    Step("no such namespace", "/api/v1/namespaces/nowhere/serviceaccounts/robot/token", token()),
    Step("no such pod", TOKEN, bound("Pod", "nobody")),
    Step("no such node", TOKEN, bound("Node", "nobody")),
    Step("pod of another account", TOKEN, bound("Pod", "quiet")),
    Step("another pod of the name", TOKEN, bound("Pod", "p", uid="other")),
    Step("another secret of the name", TOKEN, bound("Secret", "s", uid="other")),
    Step("bound to a config map", TOKEN, bound("ConfigMap", "x")),
    Step(
        "bound to another group",
        TOKEN,
        token(boundObjectRef={"kind": "Pod", "apiVersion": "apps/v1", "name": "p"}),
    ),
    Step("name that differs", TOKEN, {"metadata": {"name": "x"}, "spec": {}}),
    Step("namespace that differs", TOKEN, {"metadata": {"namespace": "x"}, "spec": {}}),
    Step("uid that differs", TOKEN, {"metadata": {"uid": "x"}, "spec": {}}),
    Step("wrong kind", TOKEN, {"kind": "Pod", "apiVersion": "v1"}),
    Step("wrong type", TOKEN, token(audiences="x")),
    Step("get of a token", TOKEN, None, method="GET"),
    Step("nobody's token", TOKEN, token(), "nobody"),
    Step("node, unbound", TOKEN, token(), "node-a"),
    Step("node, without a uid", TOKEN, bound("Pod", "p"), "node-a"),
    Step("node, another uid", TOKEN, bound("Pod", "p", uid="other"), "node-a"),
    Step("another node", TOKEN, bound("Pod", "p", uid="other"), "node-b"),
    Step("who", WHO, {}, "token"),
    Step("who, of the pod", WHO, {}, "token of the pod"),
    Step("who, of the node", WHO, {}, "token of the node"),
    Step("who, for vault", WHO, {}, "token for vault"),
    Step("review", REVIEWS, review("token")),
    Step("review of the pod", REVIEWS, review("token of the pod")),
    Step("review for vault", REVIEWS, review("token for vault", audiences=["vault", "y"])),
    Step("review, another audience", REVIEWS, review("token", audiences=["y"])),
    Step("review, own audience", REVIEWS, review("token for vault")),
    Step("review of a word", REVIEWS, {"spec": {"token": "word"}}),
    Step("review of a token of the file", REVIEWS, {"spec": {"token": "nobody-token"}}),
    Step("the same, another audience", REVIEWS, {"spec": {"token": "nobody-token", "audiences": ["y"]}}),
    Step("keys", "/openid/v1/jwks", None, method="GET"),
    Step("secret goes", f"{NAMESPACE}/secrets/s", None, method="DELETE"),
    Step("review of the secret's", REVIEWS, review("token of the secret")),
    Step("pod goes", f"{PODS}/p", {"gracePeriodSeconds": 0}, method="DELETE"),
    Step("review of the gone pod's", REVIEWS, review("unused token of the pod")),
    Step("who, of the gone pod", WHO, {}, "second unused token of the pod"),
    Step("account goes", f"{ACCOUNTS}/robot", None, method="DELETE"),
    Step("review of the gone account's", REVIEWS, review("unused token")),
    Step("account again", ACCOUNTS, account("robot")),
    Step("review of the former account's", REVIEWS, review("second unused token")),
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    require("etcd", "kube-apiserver")
    folder = tmp_path_factory.mktemp("identity")
    with kube_apiserver(folder / "kube", Settings(disabled_admission=("",))) as kube:
        assert kube.pki is not None
        key = f"--service-account-signing-key-file={kube.pki.service_account_key}"
        flags = (
            "--memory",
            "--enable-admission-plugins=ServiceAccount",
            f"--service-account-issuer={ISSUER}",
            key,
        )
        with podlife_apiserver(folder / "own", *flags) as own:
            yield play(kube), play(own)


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_answer_is_that_of_kube_apiserver(step: str, answers: tuple[dict[str, Any], dict[str, Any]]) -> None:
    theirs, ours = answers

    assert ours[step] == theirs[step]


def play(server: Server) -> dict[str, Any]:
    tls = ssl.create_default_context(cafile=str(server.ca_file))
    tokens, found, known = dict(server.tokens), {}, dict[str, str]()
    # No controllers run: what they would create.
    before = (
        Step("default account", ACCOUNTS, account("default")),
        Step("node", "/api/v1/nodes", account("node-a")),
    )
    for step in (*before, *STEPS):
        text = json.dumps(step.body)
        for name, value in tokens.items():
            text = text.replace(f"<{name}>", value)
        code, answer = send(
            server, tls, step, None if step.body is None else text.encode(), tokens[step.user]
        )
        if "token" in (answer.get("status") or {} if isinstance(answer.get("status"), dict) else {}):
            tokens[step.name] = answer["status"]["token"]
        found[step.name] = code, normalised(answer, known)
    return found


def send(server: Server, tls: ssl.SSLContext, step: Step, body: bytes | None, token: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "User-Agent": "test/1"}
    request = urllib.request.Request(f"{server.url}{step.path}", body, headers, method=step.method)
    try:
        with urllib.request.urlopen(request, context=tls, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def normalised(answer: Any, known: dict[str, str]) -> Any:
    """Without what differs between any two runs; a token becomes its header and its claims."""

    def label(match: re.Match[str]) -> str:
        return known.setdefault(match[0], f"uid-{len(known)}")

    def clean(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            kept = {each: clean(value[each], each) for each in sorted(value) if each != "resourceVersion"}
            for moment in ("exp", "nbf"):
                if moment in kept and "iat" in kept:
                    kept[moment] -= kept["iat"]
            if "warnafter" in kept:
                kept["warnafter"] = "later"
            return kept
        if isinstance(value, list):
            return [clean(each) for each in value]
        if isinstance(value, str) and name == "token" and value.count(".") == 2:
            head, claims, _ = (part + "=" * (-len(part) % 4) for part in value.split("."))
            return [clean(json.loads(base64.urlsafe_b64decode(each))) for each in (head, claims)]
        if isinstance(value, str):
            return GENERATED.sub(r"\1-X", TIME.sub("T", UUID.sub(label, value)))
        return value

    cleaned = clean(answer)
    return json.loads(re.sub(r'"iat": \d+', '"iat": 0', json.dumps(cleaned)))
