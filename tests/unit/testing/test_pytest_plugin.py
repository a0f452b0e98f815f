"""The plugin, as somebody's own tests use it."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import asyncio
import pytest
from podlife.client import NODES, PODS
from podlife.testing import Cluster

async def test_with_a_cluster(podlife_cluster):
    assert [each["metadata"]["name"] for each in (await podlife_cluster.client.list(NODES)).items] == ["n1"]
    await podlife_cluster.advance(minutes=5)
    assert podlife_cluster.time >= 300

@pytest.mark.podlife_cluster(nodes=2, controllers=("scheduler",), seed=4)
@pytest.mark.parametrize("number", [1, 2])
async def test_with_another(podlife_cluster, number, tmp_path):
    assert list(podlife_cluster.nodes) == ["n1", "n2"]
    assert list(podlife_cluster.controllers) == ["scheduler"]
    assert number in (1, 2) and tmp_path.exists()

@pytest.mark.virtual_time
async def test_without_a_cluster():
    await asyncio.sleep(1e6)

class TestInClass:
    @pytest.fixture
    def podlife_cluster(self):
        return Cluster(nodes=("a",), controllers=())

    async def test_with_a_fixture_of_its_own(self, podlife_cluster):
        assert list(podlife_cluster.nodes) == ["a"]

def test_that_is_not_async():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


@pytest.mark.parametrize("options", [("--asyncio-mode=auto",), ("--asyncio-mode=strict",), ()])
def test_async_tests_with_a_cluster_run_under_virtual_time(
    project: pytest.Pytester, options: tuple[str, ...]
) -> None:
    if not options:
        # Without pytest-asyncio, and so without its option.
        project.makeini("[pytest]\nfilterwarnings = error\n")
        options = ("-p", "no:asyncio")
    project.makepyfile(TESTS)
    result = project.runpytest("--strict-markers", *options)
    result.assert_outcomes(passed=6)


def test_failures_are_told_as_they_are(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import asyncio
        import pytest

        async def test_that_fails(podlife_cluster):
            assert podlife_cluster.node("n1").name == "n2"

        async def test_with_a_mistake(podlife_cluster):
            podlife_cluster.node("n7")

        @pytest.mark.podlife_cluster(3)
        async def test_with_a_wrong_mark(podlife_cluster):
            pass

        @pytest.mark.virtual_time
        async def test_that_leaves_a_task():
            task = asyncio.get_running_loop().create_task(asyncio.sleep(9), name="left over")
        """
    )
    result = project.runpytest("--asyncio-mode=auto")
    result.assert_outcomes(failed=3, errors=1)
    for line in (
        "*AssertionError: assert 'n1' == 'n2'*",
        "*unknown node 'n7'; this cluster has n1*",
        "*takes names: write podlife_cluster(nodes=3)*",
        "*tasks left behind: ?'left over'?*",
    ):
        result.stdout.fnmatch_lines([line])


def test_definitions_are_found_from_the_root_folder(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.mkdir("crd")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    (folder / "cups.json").write_text(json.dumps(definition))
    project.makepyfile(
        """
        import pytest
        from podlife.client import Ref

        @pytest.mark.podlife_cluster(nodes=0, controllers=(), crds="crd")
        async def test_resources_are_served(podlife_cluster):
            assert (await podlife_cluster.client.list(Ref("example.com", "v1", "cups"))).items == []
        """
    )
    monkeypatch.chdir(folder)
    project.runpytest("--rootdir", str(project.path), str(project.path)).assert_outcomes(passed=1)
