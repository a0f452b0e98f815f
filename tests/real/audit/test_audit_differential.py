"""The same requests with the same policy file to kube-apiserver and to podlife: both record the same events.

Every request carries an Audit-ID of its own, by which its events are found. What differs by nature is left out: times,
credential IDs, the names of admission plugins. A request object is recorded by kube-apiserver with its defaults, so
ours must be contained in it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kit.real_parts import Server, Settings, podlife_apiserver

WAIT_SECONDS = 120.0
NAMESPACE = "audit"

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
  - level: None
    resources: [{group: "", resources: [secrets]}]
  - level: None
    nonResourceURLs: ["/livez*", "/version"]
  - level: RequestResponse
    omitStages: [RequestReceived]
    verbs: [create, update, patch, delete]
    resources: [{group: "", resources: [configmaps]}]
  - level: Metadata
    resources: [{group: "", resources: ["*/eviction", pods/status, pods/binding]}]
  - level: Request
    resources: [{group: "", resources: ["pods/*"]}]
    namespaces: [audit]
  - level: Request
    resources: [{group: "", resources: [namespaces], resourceNames: [audit]}]
  - level: None
    userGroups: [people]
    verbs: [list]
  - level: Metadata
    users: [nobody]
  - level: Metadata
    omitStages: [RequestReceived, ResponseStarted]
"""


@dataclass(frozen=True)
class Step:
    method: str
    path: str
    body: Any = None
    who: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    # How many events it leaves.
    events: int = 1


PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 0},
}
EVICTION = {
    "kind": "Eviction",
    "apiVersion": "policy/v1",
    "metadata": {"name": "web", "namespace": NAMESPACE},
}
BINDING = {
    "kind": "Binding",
    "apiVersion": "v1",
    "metadata": {"name": "web"},
    "target": {"kind": "Node", "name": "n1"},
}
MERGE = "application/merge-patch+json"
WATCH = f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion=0"

STEPS = [
    Step(
        "POST",
        "/api/v1/namespaces",
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}},
    ),
    Step("GET", f"/api/v1/namespaces/{NAMESPACE}", events=2),
    Step("POST", PODS, POD, events=2),
    Step("POST", PODS, POD, events=2),
    Step("POST", PODS, {**POD, "metadata": {"generateName": "gen-"}}, events=2),
    Step(
        "POST",
        PODS,
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "Not_A_Name"}, "spec": {}},
        events=2,
    ),
    Step("POST", PODS, "no object", events=2),
    Step("GET", f"{PODS}/web?pretty=false", events=2),
    Step("GET", f"{PODS}/absent", events=2),
    Step("GET", PODS, events=2),
    Step("GET", WATCH, events=3),
    Step("GET", f"{PODS}?fieldSelector=metadata.name%3Dweb,spec.nodeName%21%3Dx", events=2),
    Step("GET", f"{WATCH}&fieldSelector=metadata.name%3Dweb", events=3),
    Step("PATCH", f"{PODS}/web/status", {"status": {"phase": "Running"}}, content_type=MERGE, events=2),
    Step("POST", f"{PODS}/web/binding", BINDING, events=2),
    Step("PATCH", f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE, events=2),
    Step("POST", f"{PODS}/web/eviction", EVICTION, events=2),
    Step(
        "DELETE",
        f"{PODS}/web",
        {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
        events=2,
    ),
    Step("DELETE", f"{PODS}?labelSelector=a%3Db", events=2),
    Step("POST", MAPS, {"metadata": {"name": "m"}, "data": {"k": "v"}}),
    Step("PUT", f"{MAPS}/m", {"metadata": {"name": "m", "namespace": NAMESPACE}, "data": {"k": "w"}}),
    Step("PATCH", f"{MAPS}/m", {"data": {"l": "x"}}, content_type=MERGE),
    Step("DELETE", f"{MAPS}/m"),
    Step("DELETE", f"{MAPS}/m"),
    Step("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": "s"}}, events=0),
    Step("GET", "/version", events=0),
    Step("GET", "/livez/ping", events=0),
    Step("GET", "/apis"),
    Step("GET", "/nowhere"),
    Step("GET", MAPS, who="nobody", events=0),
    Step("GET", f"{MAPS}/m", who="nobody", events=2),
    Step("DELETE", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/x", who="nobody", events=2),
    Step("GET", MAPS, headers={"Impersonate-User": "jane", "Impersonate-Group": "testers"}),
    Step("GET", f"{MAPS}/m", headers={"Impersonate-User": "jane"}, who="nobody", events=2),
    Step("GET", MAPS, headers={"X-Forwarded-For": "10.1.2.3, 10.4.5.6", "X-Real-Ip": "10.7.8.9"}),
    Step("GET", MAPS, headers={"User-Agent": "x" * 1500}),
    Step("GET", f"{PODS}/web", who="stranger"),
]


def ask(server: Server, number: int, step: Step) -> tuple[int, str]:
    """The code, and the ID that was answered."""
    tls = ssl.create_default_context(cafile=str(server.ca_file))
    connection = http.client.HTTPSConnection(server.host, server.port, context=tls, timeout=60)
    headers = {
        "Authorization": f"Bearer {server.tokens.get(step.who, 'unknown-token')}",
        "User-Agent": "differential/1.0",
        "Accept": "application/json",
        "Audit-ID": f"step-{number}",
        **step.headers,
    }
    body = None
    if step.body is not None:
        body = json.dumps(step.body).encode()
        headers["Content-Type"] = step.content_type
    try:
        connection.request(step.method, step.path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("Audit-Id", "")
    finally:
        connection.close()


def recorded(log: Path, count: int) -> dict[str, list[dict[str, Any]]]:
    """The events of the steps, by ID, once so many are there."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        lines = log.read_text().splitlines() if log.exists() else []
        events = [json.loads(line) for line in lines]
        ours = [each for each in events if each["auditID"].startswith("step-")]
        if len(ours) >= count or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in ours:
        found.setdefault(each["auditID"], []).append(each)
    return found


@contextmanager
def audited(
    start_kube: Callable[[Settings], Server], folder: Path
) -> Iterator[dict[str, tuple[Server, Path]]]:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    logs = {name: folder / f"{name}.log" for name in ("kube", "podlife")}
    flags = {name: (f"--audit-log-path={log}", f"--audit-policy-file={policy}") for name, log in logs.items()}
    kube = start_kube(Settings(flags=flags["kube"]))
    with podlife_apiserver(folder / "podlife", *flags["podlife"]) as podlife:
        yield {"kube": (kube, logs["kube"]), "podlife": (podlife, logs["podlife"])}


def simplified(event: dict[str, Any]) -> dict[str, Any]:
    """What both must agree on to the letter."""
    kept = {key: value for key, value in event.items() if not key.endswith(("Timestamp", "Object"))}
    kept["user"] = {key: value for key, value in event["user"].items() if key != "extra"}
    kept["annotations"] = event.get("annotations", {}).get("authorization.k8s.io/decision")
    status = dict(event.get("responseStatus", {}))
    # Words, and what they are about, are compared by the differential suite.
    for key in ("message", "details"):
        status.pop(key, None)
    if "objectRef" not in event:
        # A path that is no resource: kube-apiserver answers in plain text, podlife with a Status.
        status = {"code": status.get("code")}
    kept["responseStatus"] = status
    # Which right allowed the impersonation: podlife has no constrained impersonation.
    kept.pop("authenticationMetadata", None)
    reference = dict(event.get("objectRef", {}))
    # Both come from other objects in the other server.
    for key in ("uid", "resourceVersion"):
        if key in reference:
            reference[key] = "some"
    kept["objectRef"] = reference
    response = event.get("responseObject")
    kept["responseObject"] = response and (response["kind"], response["metadata"].get("name"))
    kept["requestObject"] = "requestObject" in event
    return kept


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contains, whole, part))
    return bool(whole == part)


def test_both_servers_record_the_same_events(
    start_kube: Callable[[Settings], Server], tmp_path: Path
) -> None:
    wanted = sum(step.events for step in STEPS)
    found = {}
    codes: dict[str, list[tuple[int, str]]] = {}
    with audited(start_kube, tmp_path) as servers:
        for name, (server, log) in servers.items():
            codes[name] = [ask(server, number, step) for number, step in enumerate(STEPS)]
            found[name] = recorded(log, wanted)
    assert codes["podlife"] == codes["kube"]
    differences = []
    for number, step in enumerate(STEPS):
        theirs, ours = (found[name].get(f"step-{number}", []) for name in ("kube", "podlife"))
        where = f"step {number}: {step.method} {step.path}"
        assert len(theirs) == step.events, (where, theirs)
        if [simplified(each) for each in ours] != [simplified(each) for each in theirs]:
            differences.append((where, ours, theirs))
            continue
        for mine, other in zip(ours, theirs, strict=True):
            sent = mine.get("requestObject")
            if sent is not None:
                # kube-apiserver records delete options in its internal version.
                sent.pop("apiVersion", None)
            assert contains(other.get("requestObject"), sent), where
            assert "managedFields" not in json.dumps(mine.get("responseObject"))
    assert not differences, json.dumps(differences, indent=1)
