"""docs/write-a-policy.md: what it tells people to type, typed in order in a shell, on a server in a process of its own.

Only the time at which pods are judged is changed on the way: the page cannot know when its reader takes them. The
pods are made now, and what is typed is typed a day later, when they have ended: no pod has ended before it was made.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml

from podlife.podgc.policy.parse import read_policy
from tests.component.test_pages import started
from tests.component.test_readme import Reader, read_until
from tests.kit.a_day_later import a_day_later, environment_of
from tests.kit.real_parts import ROOT

PAGE = (ROOT / "docs" / "write-a-policy.md").read_text(encoding="utf-8")
NOW = "2030-01-02T00:00:00Z"

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

CREATE = """
import asyncio, json, sys
from podlife.client import NAMESPACES, NODES, PODS, Client, load

async def main():
    objects = json.load(sys.stdin)
    async with Client.connect(load()) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await client.create(NODES, {"metadata": {"name": "n1"}})
        for pod in objects:
            status = {"status": pod.pop("status")}
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            await client.create(PODS, pod, namespace)
            await client.patch(PODS, name, status, namespace, subresource="status")

asyncio.run(main())
"""


def blocks(language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def pod(
    namespace: str, name: str, ended_ago: timedelta, reason: str = "", job: str = ""
) -> dict[str, object]:
    ended = (a_day_later() - ended_ago).strftime("%Y-%m-%dT%H:%M:%SZ")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    end = {"terminated": {"exitCode": 1, "finishedAt": ended}}
    container = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": end}
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner] if job else []},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Failed", "reason": reason, "containerStatuses": [container]},
    }


HOUR = timedelta(hours=1)
PODS = [
    pod("shop", "web", HOUR, "Evicted"),
    pod("kube-system", "dns", HOUR, "Evicted"),
    *(pod("shop", f"night-{number}", number * 2 * HOUR, job="night") for number in range(5)),
]
GONE = ["shop/night-3 jobs", "shop/night-4 jobs", "shop/web evicted"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """With a cluster, pods in it, and the policy of the page in the file that it names."""
    reader = Reader(tmp_path_factory.mktemp("home"))
    (reader.home / "policy.yaml").write_text(blocks("yaml")[0])
    with reader.running(reader.arguments("podlife apiserver --memory")) as server:
        found = re.search(r"export KUBECONFIG=(\S+)", read_until(server, "Ctrl-C stops it."))
        assert found is not None
        reader.environment["KUBECONFIG"] = found[1]
        program = [sys.executable, "-c", CREATE]
        subprocess.run(
            program, input=json.dumps(PODS), text=True, check=True, timeout=60, env=reader.environment
        )
        reader.environment |= environment_of(tmp_path_factory.mktemp("clock"))
        yield reader


def typed(reader: Reader, block: str) -> str:
    """What the lines of the block print, in the reader's folder."""
    return reader.run(["bash", "-euc", f"cd '{reader.home}'\n{block}"])


def test_the_page_from_top_to_bottom(reader: Reader) -> None:
    check, plan, act, take, hold = blocks()
    now = (a_day_later() + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert typed(reader, check) == f"policy.yaml: valid: 2 rules\n{blocks('text')[0]}"
    shown = typed(reader, plan)
    assert "NAMESPACE   NAME      RULE      REASON" in shown
    assert typed(reader, "podlife gc policy test policy.yaml -o list").splitlines() == GONE
    typed(reader, take.replace(NOW, now))
    assert (reader.home / "expected.txt").read_text().splitlines() == GONE
    assert "As expected by expected.txt: 3 pods would be deleted." in typed(reader, hold.replace(NOW, now))
    sweep, run = act.splitlines()
    assert "3 pods deleted" in typed(reader, sweep)
    left = typed(reader, "kubectl get pods -A -o name")
    assert sorted(left.split()) == ["pod/dns", *(f"pod/night-{number}" for number in range(3))]
    policy = (reader.home / "policy.yaml").read_text()
    with started(reader, *run.split()) as collector:
        collector.wait_for("watching over ")
        (reader.home / "policy.yaml").write_text(policy.replace("[Failed]", "[Faild]"))
        collector.wait_for("policy not reloaded: policy.yaml:8:15: ")
        (reader.home / "policy.yaml").write_text(policy.replace("count: 3", "count: 2"))
        collector.wait_for("policy.yaml loaded: 2 rules")
        collector.wait_for("deleted: shop/night-2")


def test_every_policy_and_mistake_on_the_page_is_as_it_says() -> None:
    policy, line = blocks("yaml")
    assert line.startswith("# yaml-language-server: $schema=")
    broken = policy.replace("phase: [Failed]", "phase: [Faild]").replace("Finished: 10m", "Finished: 10")
    with pytest.raises(Exception, match="Faild") as caught:
        read_policy(broken, "policy.yaml")
    assert f"{caught.value}\n" == blocks("text")[1]


def test_every_line_of_the_reference_is_one_that_is_read() -> None:
    """What stands in the first column of a table is put into a policy and read."""
    parts = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", PAGE, re.DOTALL | re.MULTILINE))
    assert set(parts) == {"protect", "rules", "upstream", "guards"}
    for part, text in parts.items():
        said = [
            example
            for cell in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
            for example in re.findall(r"`([^`]+: [^`]+)`", cell)
        ]
        assert len(said) >= 3
        for example in said:
            read_policy(json.dumps(policy_with(part, yaml.safe_load(example))), example)


def policy_with(part: str, said: dict[str, object]) -> dict[str, object]:
    head: dict[str, object] = {"apiVersion": "podlife.dev/v1", "kind": "PodGCPolicy"}
    if part != "rules":
        return head | {part: said}
    rule: dict[str, object] = {"name": "a", "ttlAfterFinished": "1h", "keep": {"count": 1}}
    (key,) = said
    is_limit = key in ("keep", "ttlAfterFinished", "collectWhen", "maxTerminating", "waitForOwner", "enabled")
    return head | {"rules": [rule | (said if is_limit else {"select": said})]}
