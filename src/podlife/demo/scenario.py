"""What a scenario works with: the cluster of the demo, a client, a recorder and the journal of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from podlife.api.codec import Object
from podlife.client import Client
from podlife.demo.cluster import DemoCluster
from podlife.demo.recorder import ClusterRecorder, NotObservedError, RecordedObject, condition
from podlife.demo.workloads import Journal


class DemoScenario:
    """The texts of its steps are formatted with `facts`."""

    def __init__(self, context: DemoContext) -> None:
        self.context = context
        self._recorder = context.recorder
        self._journal = context.journal
        times = asdict(context.cluster.times)
        self.facts: dict[str, object] = {**times, "renew_seconds": context.cluster.times.renew_seconds}

    async def _until_gone(self, obj: Object, *, seconds: float = 30.0) -> RecordedObject:
        what = f"{name_of(obj)} gone"
        return await self._recorder.until_seen(what, uid_of(obj), lambda seen: seen.is_gone, seconds=seconds)

    def _check_running_on(self, pod: Object) -> None:
        if not self._journal.alive(name_of(pod), node_of(pod)):
            raise NotObservedError(f"the process of {name_of(pod)} still running")


@dataclass(frozen=True, slots=True)
class DemoContext:
    cluster: DemoCluster
    client: Client
    recorder: ClusterRecorder
    journal: Journal

    async def until_nodes_ready(self, nodes: Sequence[str]) -> None:
        def are_ready() -> bool:
            return all((node := self.recorder.node(name)) is not None and is_ready(node) for name in nodes)

        await self.recorder.until_true(f"{listed(nodes)} ready", are_ready, seconds=60)

    async def until_pods_ready(self, app: str, count: int) -> list[Object]:
        def find() -> list[Object] | None:
            pods = self.recorder.pods(app)
            is_all = len(pods) == count and all(is_ready(pod) and not is_terminating(pod) for pod in pods)
            return pods if is_all else None

        return await self.recorder.until(f"{count} pods of {app}, all ready", find, seconds=60)

    async def until_process(self, pod: Object) -> int:
        """The only process of a ready pod; its journal entry may come shortly after."""

        def find() -> int | None:
            pids = self.journal.alive(name_of(pod), node_of(pod))
            return pids[0] if len(pids) == 1 else None

        return await self.recorder.until(f"{name_of(pod)} as exactly one process", find)


def is_ready(obj: Object) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def uid_of(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def places(pods: Sequence[Object]) -> str:
    return listed([f"{name_of(pod)} on {node_of(pod)}" for pod in pods])


def listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
