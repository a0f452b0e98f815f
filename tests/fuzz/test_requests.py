"""Requests of every form: methods, paths, queries and headers that nobody has thought of."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import share
from tests.fuzz.objects import NAMESPACE, SEEDS, Seed
from tests.fuzz.values import anything, bodies, broken_bytes, seeds, strange_texts
from tests.fuzz.wire import Wire, judge

METHODS = ("GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
PLURALS = tuple(seed.resource.plural for seed in SEEDS)
WORDS = (
    "api", "apis", "v1", "v2", "v3", "apps", "batch", "policy", "events.k8s.io", "coordination.k8s.io", "namespaces",
    NAMESPACE, "kube-system", *PLURALS, "bindings", "it", "status", "scale", "log", "exec", "eviction", "binding",
    "finalize", "resize", "ephemeralcontainers", "attach", "portforward", "proxy", "version", "healthz", "readyz",
    "metrics", "openapi", "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
    "authentication.k8s.io", "selfsubjectreviews", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
)  # fmt: skip
TRICKS = (
    "..", ".", "", "%2e%2e", "%2F", "%00", "%ff", "%zz", "%", "%25", "a%20b", "~", "*", ";a=b", ":", "@", "a" * 3000,
    "%F0%9F%98%80", "%C0%AE", "\\", "|", "{}", "A", "Pods", "PODS", "a%0d%0aX: y", "%E2%80%A8",
)  # fmt: skip
FLAGS = ("", "true", "false", "1", "0", "yes", "TRUE", "null")
NUMBERS = (
    "",
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "abc",
    "00",
    "+1",
    " 1",
    "1_0",
    "٣",
    "²",
    "9" * 30,
    "0x1",
    "NaN",
    "1e3",
)
SELECTORS = (
    "", "a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b)", "a in ()", "a in (", "a in b", "a>1", "a<x",
    "a=b,c=d", ",", "=", "==", "!", "a=b=c", "a,,b", "(a)", "a in (b),", "a.b/c=d", "a/b/c=d", "a=" + "x" * 70, "in",
    "notin in (in)", "a in (in)", "a =b", "metadata.name=it", "metadata.name!=it", "metadata.namespace=default",
    "spec.nodeName=", "spec.nodeName=x", "status.phase=Running", "status.phase!=Running", "involvedObject.name=it",
    "metadata.name=a\\,b", "metadata.name=a\\", "metadata.name in (a)", "type=Opaque", "x.y=z",
    "spec.unschedulable=true",
)  # fmt: skip
TOKENS = (
    "x", "e30", "bnVsbA", "W10", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OTk5LCJzdGFydCI6ImEifQ",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8ifQ", "====", "é",
)  # fmt: skip
QUERIES: dict[str, tuple[str, ...]] = {
    "watch": FLAGS,
    "limit": NUMBERS,
    "continue": TOKENS,
    "resourceVersion": NUMBERS,
    "resourceVersionMatch": ("", "Exact", "NotOlderThan", "exact", "x"),
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "timeoutSeconds": NUMBERS,
    "sendInitialEvents": FLAGS,
    "allowWatchBookmarks": FLAGS,
    "dryRun": ("", "All", "all", "None", "server"),
    "fieldManager": ("", "me", "x" * 129, "\x00", "é"),
    "fieldValidation": ("", "Strict", "Warn", "Ignore", "no"),
    "gracePeriodSeconds": (*NUMBERS, "9223372036854775807", "-9223372036854775808", "99999999999", "253402300800"),
    "propagationPolicy": ("", "Orphan", "Foreground", "Background", "x"),
    "orphanDependents": FLAGS,
    "pretty": FLAGS,
    "hash": ("", "x"),
    "includeObject": ("", "None", "Metadata", "Object", "x"),
    "tailLines": NUMBERS,
    "follow": FLAGS,
    "container": ("", "main", "x"),
    "command": ("", "ls"),
    "stdin": FLAGS,
    "timeout": ("", "1s", "x"),
}  # fmt: skip
JSON = "application/json"
ACCEPTS = (
    "", "*/*", JSON, "application/yaml", "application/vnd.kubernetes.protobuf", "text/html", "application/cbor", "x",
    "/", "application/*", "*", ",", ";", f"{JSON};as=Table;v=v1;g=meta.k8s.io", f"{JSON};as=Table",
    f"{JSON};as=Table;v=v9",
    f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    f"{JSON};as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", f"{JSON};q=0", f"{JSON};q=x", f"{JSON};as=Nothing",
    f"{JSON};stream=watch", f"{JSON};pretty=1", "application/json;as", "a/b;" * 500, f"{JSON};q=1;q=2",
    '"', f'{JSON};a="',
)  # fmt: skip
TYPES = (
    JSON, "", "application/yaml", "text/plain", "application/vnd.kubernetes.protobuf", "application/cbor", "x", "/",
    ";",
    "application/json; charset=utf-16", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "multipart/form-data",
)  # fmt: skip
HEADERS: dict[str, tuple[str, ...]] = {
    "Accept": ACCEPTS,
    "Content_Type": TYPES,
    "Accept_Encoding": ("gzip", "br", "identity;q=0", "*", "gzip;q=0", "x" * 100),
    "User_Agent": ("", "curl/8", "Mozilla/5.0", "kubectl/v1.36", "\xff"),
    "If_None_Match": ("*", '"x"', "x"),
    "Upgrade": ("websocket", "SPDY/3.1", "h2c", "x"),
    "Connection": ("Upgrade", "close", "keep-alive", "x"),
    "Sec_WebSocket_Key": ("dGhlIHNhbXBsZSBub25jZQ==", "x"),
    "Sec_WebSocket_Version": ("13", "x"),
    "Sec_WebSocket_Protocol": ("v4.channel.k8s.io", "v5.channel.k8s.io", "x"),
    "Impersonate_User": ("system:admin", ""),
    "X_Forwarded_For": ("127.0.0.1",),
    "Range": ("bytes=0-1",),
    "Host": ("", "x", "a b", "[::1", "é"),
    "Content_Encoding": ("gzip", "x"),
    "Cookie": ("a=b", "=", ";"),
}


@st.composite
def paths(draw: st.DrawFn) -> str:
    """Near a real path, or far from any."""
    if draw(st.integers(0, 3)):
        parts = [draw(seeds).collection]
        parts += draw(st.lists(st.sampled_from((*WORDS[-26:], *TRICKS, "it", "it")), max_size=3))
        return "/".join(parts)
    parts = draw(st.lists(st.sampled_from((*WORDS, *WORDS, *TRICKS)), max_size=8))
    return "/" + "/".join(parts)


@st.composite
def queries(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(QUERIES)), max_size=4))
    pairs = []
    for name in names:
        value = draw(st.one_of(st.sampled_from(QUERIES[name]), strange_texts))
        pairs.append(f"{name}={quote(value.encode('utf-8', 'replace'), safe='')}")
    if draw(st.integers(0, 9)) == 0:
        pairs.append(
            draw(
                st.sampled_from(
                    ["", "&", "=", "a", "%", "%zz=%zz", "a=%ff", "x" * 2000, ";", "a;b=c", "watch"]
                )
            )
        )
    return "?" + "&".join(pairs) if pairs else ""


def heads() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in HEADERS.items()}
    )


@share(0.25)
@given(method=st.sampled_from(METHODS), path=paths(), query=queries(), head=heads(), data=st.data())
def test_a_request_of_any_form_is_answered(
    wire: Wire, method: str, path: str, query: str, head: dict[str, str], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(sorted(head)), max_size=3, unique=True)) if head else []
    body = data.draw(bodies(data.draw(anything))) if method in ("POST", "PUT", "PATCH", "DELETE") else None
    answer = wire.request(method, path + query, body, **{name: head[name] for name in kept})
    judge(answer, method)


@share(0.12)
@given(seed=seeds, query=queries(), accept=st.sampled_from(ACCEPTS), one=st.booleans())
def test_a_read_with_any_query_is_answered(
    wire: Wire, seed: Seed, query: str, accept: str, one: bool
) -> None:
    path = f"{seed.collection}/it" if one else seed.collection
    judge(wire.request("GET", path + query, Accept=accept))


@share(0.06)
@given(seed=seeds, query=queries(), data=st.data())
def test_a_delete_with_any_options_is_answered(
    wire: Wire, seed: Seed, query: str, data: st.DataObject
) -> None:
    wire.request("POST", seed.collection, msgspec.json.encode(seed.object("it")))
    options = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "kind": st.sampled_from(["DeleteOptions", "Pod", "", 1]),
                "apiVersion": st.sampled_from(["v1", "meta.k8s.io/v1", "apps/v1", "x", 1]),
                "gracePeriodSeconds": st.sampled_from(
                    [0, 1, -1, 30, 2**31, 2**63 - 1, -(2**63), 2**63, 253402300800, "1", 1.5, None]
                ),
                "preconditions": st.one_of(
                    anything, st.just({"uid": "x"}), st.just({"resourceVersion": "1"})
                ),
                "propagationPolicy": st.one_of(
                    anything, st.sampled_from(["Orphan", "Foreground", "Background"])
                ),
                "orphanDependents": anything,
                "dryRun": st.one_of(anything, st.just(["All"])),
            },
        )
    )
    body = data.draw(bodies(options)) if data.draw(st.booleans()) else None
    judge(wire.request("DELETE", f"{seed.collection}/it{query}", body))
    judge(
        wire.request(
            "PATCH",
            f"{seed.collection}/it",
            b'{"metadata":{"finalizers":null}}',
            Content_Type="application/merge-patch+json",
        )
    )


@share(0.04)
@given(seed=seeds, data=st.data(), is_update=st.booleans())
def test_a_body_in_any_bytes_is_answered(
    wire: Wire, seed: Seed, data: st.DataObject, is_update: bool
) -> None:
    whole = msgspec.json.encode(seed.object("it"))
    body = data.draw(st.one_of(broken_bytes(whole), st.binary(max_size=60)))
    content_type = data.draw(st.sampled_from(TYPES))
    path = f"{seed.collection}/it" if is_update else seed.collection
    judge(wire.request("PUT" if is_update else "POST", path, body, Content_Type=content_type))
