"""A part of each chapter, as `make conformance-api` and `make conformance-apps` run it whole: a spec or two of each
kind of API that others extend the server with, and of what the server itself promises; of each controller, and of
kubectl."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.kit.real_parts import ROOT
from tests.real.conformance.__main__ import PARTS
from tests.real.conformance.containers import PARTS as IMAGES
from tests.real.conftest import require
from tests.real.containerd.conftest import require_containerd

# Each takes seconds; the specs of a chapter together less than two minutes on a busy machine.
API = (
    "AdmissionWebhook.* should mutate custom resource with pruning",
    "AdmissionWebhook.* should be able to deny attaching pod",
    "ValidatingAdmissionPolicy.* should validate against a Deployment",
    "AdmissionWebhook.* should mutate custom resource with different stored version",
    "CustomResourceDefinition resources.* Simple CustomResourceDefinition listing",
    "CustomResourcePublishOpenAPI.* works for CRD with validation schema",
    "FieldValidation should detect unknown and duplicate fields of a typed object",
    "Discovery should validate PreferredVersion for each APIGroup",
    "Servers with support for Table transformation",
    "Servers with support for API chunking should return chunks",
    "OrderedNamespaceDeletion",
    "Watchers should be able to restart watching from the last resource version",
)
APPS = (
    "ControllerRevision.* should manage the lifecycle",
    "Daemon set.* should rollback without unnecessary restarts",
    "Deployment.* should support rollover",
    "DisruptionController should block an eviction until the PDB is updated",
    "DisruptionController should update/patch PodDisruptionBudget status",
    "Job should allow to use a pod failure policy to ignore failure matching on DisruptionTarget",
    "Job should create pods for an Indexed job",
    "ReplicaSet should adopt matching pods",
    "ReplicationController should release no longer matching pods",
    "StatefulSet.* should validate Statefulset Status endpoints",
    "Events API should ensure that an event can be fetched",
    "Kubectl diff",
    "Kubectl label",
    "Conformance Tests should have at least two untainted nodes",
)
_SECONDS = 900.0


@pytest.mark.parametrize(("chapter", "specs"), [("api", API), ("apps", APPS)], ids=["api", "apps"])
def test_a_part_of_the_conformance_suite_passes(chapter: str, specs: Sequence[str]) -> None:
    require_containerd()
    require(*PARTS, *IMAGES)
    command = [
        sys.executable,
        "-m",
        "tests.real.conformance",
        "--chapter",
        chapter,
        "--focus",
        "|".join(specs),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"\n{len(specs)} of {len(specs)} specs passed" in done.stdout, done.stdout
