"""Records the answers of a real kube-apiserver.

`python -m tests.unit.apiserver.strategies.record_golden https://127.0.0.1:6443 TOKEN`

Creates are dry runs. For updates objects are really created in the namespace `default`, and removed again.
The server must run with `--disable-admission-plugins=ServiceAccount`.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from podlife.apiserver.resource import Resource
from tests.unit.apiserver.strategies.cases_updates import Update, updates
from tests.unit.apiserver.strategies.strategy_replay import comparable
from tests.unit.apiserver.strategies.strategy_table import CREATES, RESOURCES

GOLDEN = Path(__file__).parent / "golden"
# The server is one's own, on loopback, with a certificate nobody signed.
_TRUST = ssl._create_unverified_context()


def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
    server, token = sys.argv[1:3]
    request = urllib.request.Request(server + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, context=_TRUST, timeout=30) as answer:
            return {"code": answer.status, "body": json.load(answer)}
    except urllib.error.HTTPError as error:
        return {"code": error.code, "body": json.load(error)}


def path_of(resource: Resource) -> str:
    base = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return (
        f"{base}/namespaces/default/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )


def record_update(case: Update) -> dict[str, Any]:
    resource = RESOURCES[case.resource]
    where = f"{path_of(resource)}/{case.created['metadata']['name']}"
    old = call("POST", path_of(resource), case.created)["body"]
    try:
        if case.status is not None:
            old = call("PUT", f"{where}/status", {**old, "status": case.status})["body"]
        new = json.loads(json.dumps(old))
        case.change(new)
        answer = call("PUT", f"{where}/{case.subresource}?dryRun=All".replace("/?", "?"), new)
        return {"old": comparable({"code": 200, "body": old})["body"], **comparable(answer)}
    finally:
        call("DELETE", f"{where}?gracePeriodSeconds=0&propagationPolicy=Background")
        while (left := call("GET", where))["code"] == 200:
            if left["body"]["metadata"].get("finalizers"):
                left["body"]["metadata"]["finalizers"] = []
                call("PUT", where, left["body"])
            elif resource.plural == "namespaces":
                left["body"]["spec"] = {}
                call("PUT", f"{where}/finalize", left["body"])
            time.sleep(0.05)


def main() -> None:
    files: dict[str, dict[str, Any]] = {}
    for file, resource, cases in CREATES:
        for label, obj in cases():
            answer = comparable(call("POST", f"{path_of(resource)}?dryRun=All", obj))
            files.setdefault(file, {})[f"{resource.key}: {label}"] = answer
    for case in updates():
        files.setdefault("updates", {})[f"{case.resource}: {case.label}"] = record_update(case)
    GOLDEN.mkdir(exist_ok=True)
    for name, answers in files.items():
        lines = (
            f"{json.dumps(label)}: {json.dumps(answers[label], sort_keys=True)}" for label in sorted(answers)
        )
        (GOLDEN / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
