"""The real parts as fixtures. A missing part skips a test here, and fails it with CI=true."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pluggy
import pytest

from tests.kit.real_parts import (
    MissingPartError,
    Server,
    Settings,
    controller_manager,
    kube_apiserver,
    part,
    podlife_apiserver,
    remove_quietly,
    run_kubectl,
)


class Kubectl(Protocol):
    def __call__(
        self, *arguments: str, kubeconfig: Path, stdin: str | None = None, seconds: float = 60.0
    ) -> subprocess.CompletedProcess[str]: ...


class StartControllerManager(Protocol):
    def __call__(self, controllers: Sequence[str], server: Server, *flags: str) -> Path: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pluggy.Result[pytest.TestReport]]:
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.session.stash[FAILED] = True
        logs = [str(server.log) for server in item.session.stash.get(SERVERS, [])]
        report.sections.append(("logs of the servers", "\n".join(logs)))


FAILED = pytest.StashKey[bool]()
SERVERS = pytest.StashKey[list[Server]]()


def require(*parts: str) -> None:
    """Skip, or fail in CI, when a part is not there."""
    try:
        for name in parts:
            part(name)
    except MissingPartError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def parts_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where parts keep their files; it stays when a test has failed, with their logs."""
    folder = tmp_path_factory.mktemp("parts")
    yield folder
    if not request.session.stash.get(FAILED, False):
        remove_quietly(folder)


def _remember(request: pytest.FixtureRequest, server: Server) -> Server:
    request.session.stash.setdefault(SERVERS, []).append(server)
    return server


@pytest.fixture(scope="session")
def kube(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[Server]:
    """kube-apiserver over etcd, one for the whole session: a test makes a namespace of its own."""
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "kube") as server:
        yield _remember(request, server)


@pytest.fixture
def start_kube(
    request: pytest.FixtureRequest, parts_folder: Path, tmp_path: Path
) -> Iterator[Callable[[Settings], Server]]:
    """A kube-apiserver of the test's own, for flags that would disturb the others."""
    require("etcd", "kube-apiserver")
    with ExitStack() as stack:

        def start(settings: Settings) -> Server:
            return _remember(request, stack.enter_context(kube_apiserver(tmp_path / "kube", settings)))

        yield start


@pytest.fixture(scope="session")
def podlife_server(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[Server]:
    """Our own API server, started as a user starts it, one for the whole session."""
    with podlife_apiserver(parts_folder / "podlife") as server:
        yield _remember(request, server)


@pytest.fixture
def start_controller_manager(tmp_path: Path) -> Iterator[StartControllerManager]:
    """Starts kube-controller-manager with the named controllers against any server; gives its log."""
    require("kube-controller-manager")
    with ExitStack() as stack:

        def start(controllers: Sequence[str], server: Server, *flags: str) -> Path:
            return stack.enter_context(controller_manager(tmp_path / "kcm", server, controllers, *flags))

        yield start


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    """kubectl v1.36: `kubectl("get", "pods", kubeconfig=server.kubeconfig)`."""
    require("kubectl")
    return functools.partial(run_kubectl)
