"""A part of the chapter, as `make conformance-api` runs it whole: a spec or two of each kind of API that others extend
the server with, and of what the server itself promises."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.real_parts import ROOT
from tests.real.conformance.__main__ import PARTS
from tests.real.conformance.containers import PARTS as IMAGES
from tests.real.conftest import require
from tests.real.containerd.conftest import require_containerd

# Each takes seconds; together less than two minutes on a busy machine.
SPECS = (
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
_SECONDS = 900.0


def test_a_part_of_the_conformance_suite_passes() -> None:
    require_containerd()
    require(*PARTS, *IMAGES)
    command = [sys.executable, "-m", "tests.real.conformance", "--focus", "|".join(SPECS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"\n{len(SPECS)} of {len(SPECS)} specs passed" in done.stdout, done.stdout
