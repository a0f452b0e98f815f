"""podlife's own collector and controllers, a kopf operator and descheduler in pods of `podlife up`: each does its work
with the roles of its manifests, and is refused what they do not give. As processes and as containers.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real.conftest import require
from tests.real.containerd.conftest import require_containerd
from tests.real.ecosystem.in_cluster import tell, tell_in_containers

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a volume for a process"),
    # A dozen pods, half of which start a Python.
    pytest.mark.timeout(900),
]
GC, CONTROLLERS, GREETER = (
    f"system:serviceaccount:{each}"
    for each in ("podlife-system:podlife-gc", "podlife-system:podlife-controllers", "greeter:greeter")
)
OUTCOME = {
    "collector": {
        "left": "newer",
        "orphan deleted by": GC,
        "older deleted by": GC,
        "pods": "PodList",
        "secrets": f'secrets is forbidden: User "{GC}" cannot list resource "secrets" in API group "" at the cluster '
        "scope",
    },
    "controllers": {
        "pod written by": CONTROLLERS,
        "jobs": "JobList",
        "metrics": f'forbidden: User "{CONTROLLERS}" cannot get path "/metrics"',
    },
    "operator": {
        "world": "a     Hello, world!",
        "moon": "a     Hello, moon!",
        "status written by": GREETER,
        "greetings": "GreetingList",
        "elsewhere": f'greetings.example.com is forbidden: User "{GREETER}" cannot list resource "greetings" in API '
        'group "example.com" in the namespace "default"',
    },
    "descheduler": {
        "ready": "2",
        "evicted by": "system:serviceaccount:kube-system:descheduler-sa",
    },
}


def test_processes_do_what_their_roles_allow(tmp_path: Path) -> None:
    require("kubectl", "descheduler")

    assert tell(tmp_path, "process") == OUTCOME


def test_containers_do_what_their_roles_allow() -> None:
    require("kubectl", "descheduler")
    require_containerd()

    assert tell_in_containers() == OUTCOME
