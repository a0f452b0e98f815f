"""A kube-apiserver for the collector as a user runs it: it acts on the whole cluster, so no other tests are on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.real_parts import Server, kube_apiserver
from tests.real.conftest import require


@pytest.fixture(scope="module")
def gc_kube(parts_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    require("etcd", "kube-apiserver", "kubectl")
    with kube_apiserver(parts_folder / f"gc-{request.module.__name__.rpartition('.')[2]}") as server:
        yield server
