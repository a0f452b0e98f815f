"""Both API servers, one after the other, for tests of kubectl with our controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.real_parts import Server, kube_apiserver, podlife_apiserver
from tests.real.conftest import require


@pytest.fixture(scope="module", params=["kube-apiserver", "podlife"])
def server(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[Server]:
    require("kubectl")
    folder = parts_folder / f"{request.module.__name__.rpartition('.')[2]}-{request.param}"
    if request.param == "podlife":
        with podlife_apiserver(folder) as started:
            yield started
        return
    require("etcd", "kube-apiserver")
    with kube_apiserver(folder) as started:
        yield started
