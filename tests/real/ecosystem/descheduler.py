"""What runs of descheduler have in common: its sources, with its own manifests, and a policy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kit.real_parts import tools

STRATEGY = "RemovePodsViolatingNodeTaints"


def policy(namespace: str) -> dict[str, Any]:
    """Pods of the namespace must leave nodes whose taints they do not tolerate."""
    profile = {
        "name": "leaving",
        "pluginConfig": [
            {"name": "DefaultEvictor"},
            {"name": STRATEGY, "args": {"namespaces": {"include": [namespace]}}},
        ],
        "plugins": {"deschedule": {"enabled": [STRATEGY]}},
    }
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}


def sources() -> Path:
    """Where Go keeps its module."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", "sigs.k8s.io/descheduler"],
        cwd=tools().ECOSYSTEM["descheduler"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return Path(json.loads(done.stdout)["Dir"])


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return "deletionTimestamp" not in pod["metadata"] and any(
        (each["type"], each["status"]) == ("Ready", "True") for each in conditions
    )
