"""Clusters for software that others have written, with a missing part handled as everywhere in tests/real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.real_parts import Server
from tests.real.conftest import require
from tests.real.ecosystem import clusters


@pytest.fixture(scope="module")
def both_clusters(parts_folder: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    """Kubernetes' own control plane, and `podlife up`."""
    require("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
    folder = parts_folder / request.module.__name__.rpartition(".")[2]
    with clusters.kubernetes(folder / "theirs") as theirs, clusters.podlife(folder / "ours") as ours:
        yield theirs, ours
