"""pytest plugin: fixtures, and virtual time for the async tests that use them.

* `podlife_cluster`: a running cluster under virtual time. `@pytest.mark.podlife_cluster(nodes=3)` takes the arguments
  of `Cluster` (`crds` are relative to pytest's root folder); a fixture of the same name may return any other one.
* `podlife_real_cluster`: a cluster in real time with a socket, in its own thread, for blocking clients and kopf.
* `@pytest.mark.virtual_time`: an async test under virtual time without a cluster.

Works with and without pytest-asyncio. pytest loads it wherever podlife is installed, so it imports nothing before
use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from podlife.testing.cluster import Cluster
    from podlife.testing.in_thread import ClusterInThread

_FIXTURE = "podlife_cluster"
_MARK = "virtual_time"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: an async test in which waiting takes no time (podlife)")
    config.addinivalue_line(
        "markers",
        f"{_FIXTURE}(nodes=1, controllers=DEFAULT, crds=(), seed=0, toleration_seconds=300): what it is made with",
    )


@pytest.fixture
def podlife_cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster that starts with the test and ends with it."""
    from podlife.testing.cluster import Cluster

    return Cluster(**_settings(request.node))


@pytest.fixture
def podlife_real_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterInThread]:
    """A cluster in real time; connect with its `kubeconfig`."""
    from podlife.testing.in_thread import cluster_in_thread

    with cluster_in_thread(**_settings(request.node)) as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Generator[None, Any, Any]:
    made = yield
    if isinstance(made, list):
        return [_virtual(each) for each in made]
    return _virtual(made)


def _virtual(item: Any) -> Any:
    """The item itself, or a replacement that runs under virtual time."""
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.function):
        return item
    if item.get_closest_marker(_MARK) is None and _FIXTURE not in item.fixturenames:
        return item
    return _VirtualFunction.from_parent(
        item.parent,
        name=item.name,
        callspec=getattr(item, "callspec", None),
        # The original function: other plugins may have wrapped it.
        callobj=item.obj,
        fixtureinfo=item._fixtureinfo,
        keywords=item.keywords,
        originalname=item.originalname,
    )


class _VirtualFunction(pytest.Function):
    """An async test with its own event loop, in which its cluster starts and ends."""

    def runtest(self) -> None:
        from podlife.testing.virtual_loop import run_virtually

        # Bypasses other plugins, which would use their own loop.
        arguments = {name: self.funcargs[name] for name in self._fixtureinfo.argnames}
        run_virtually(lambda: _run(self.obj, arguments))


async def _run(test: Callable[..., Coroutine[Any, Any, None]], arguments: dict[str, Any]) -> None:
    from podlife.testing.cluster import Cluster

    cluster = arguments.get(_FIXTURE)
    if isinstance(cluster, Cluster):
        async with cluster:
            await test(**arguments)
    else:
        await test(**arguments)


def _settings(node: Any) -> dict[str, Any]:
    marker = node.get_closest_marker(_FIXTURE)
    if marker is None:
        return {}
    if marker.args:
        raise pytest.UsageError(
            f"@pytest.mark.{_FIXTURE} takes names: write {_FIXTURE}(nodes={marker.args[0]!r})"
        )
    settings = dict(marker.kwargs)
    if (crds := settings.get("crds")) is not None:
        given = crds if isinstance(crds, list | tuple) else [crds]
        root = node.config.rootpath
        settings["crds"] = [root / each if isinstance(each, str | Path) else each for each in given]
    return settings
