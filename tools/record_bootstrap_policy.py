"""Record the bootstrap roles and bindings of RBAC from a running kube-apiserver.

    python tools/record_bootstrap_policy.py --server https://127.0.0.1:6443 --token TOKEN

writes `authz/bootstrap_policy.json`, without the label and the annotation that all of them have. Run it without
kube-controller-manager, which fills in the rules of roles that aggregate others.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src/podlife/apiserver/authz/bootstrap_policy.json"
PLURALS = ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
LABEL = "kubernetes.io/bootstrapping"


def objects_of(server: str, token: str, plural: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(
        f"{server}/apis/rbac.authorization.k8s.io/v1/{plural}?labelSelector={LABEL}%3Drbac-defaults",
        headers={"Authorization": f"Bearer {token}"},
    )
    # A test server's certificate is its own; nothing secret is sent to it.
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        return [recorded(obj) for obj in json.load(answer)["items"]]


def recorded(obj: dict[str, Any]) -> dict[str, Any]:
    meta = obj["metadata"]
    kept = {name: meta[name] for name in ("name", "namespace") if name in meta}
    if labels := {key: value for key, value in meta["labels"].items() if key != LABEL}:
        kept["labels"] = labels
    return {**obj, "metadata": kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    parts = []
    for plural in PLURALS:
        found = objects_of(options.server, options.token, plural)
        lines = ",\n".join(f"  {json.dumps(obj, sort_keys=True, separators=(',', ':'))}" for obj in found)
        parts.append(f' "{plural}": [\n{lines}\n ]')
    TARGET.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
