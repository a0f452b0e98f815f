"""`podlife demo graceful-delete`: a deletion in ten steps, each triggered or awaited, checked, then described."""

from __future__ import annotations

import asyncio

from podlife.api.codec import Object
from podlife.client import EVENTS, PODS, DeleteOptions, ListOptions
from podlife.demo.narrator import DemoStep
from podlife.demo.recorder import NotObservedError, RecordedObject
from podlife.demo.scenario import DemoContext, DemoScenario, is_terminating, listed, node_of, places, uid_of
from podlife.demo.workloads import JournalEntry, pod, template
from podlife.errors import NotFoundError

_GRACES = {"polite": 10, "stubborn": 3, "lonely": 2}
_HOOK_SECONDS = 2
# Far longer than any grace period here.
_LONG_HOOK_SECONDS = 300
_HANGING_SECONDS = 3.0
_LEAST_STOP_SECONDS = 2


class GracefulDelete(DemoScenario):
    def __init__(self, context: DemoContext) -> None:
        super().__init__(context)
        self._pods: dict[str, Object] = {}
        self._deleted_at = 0.0
        self.facts |= {f"{name}_seconds": grace for name, grace in _GRACES.items()}
        self.facts |= {"hook_seconds": _HOOK_SECONDS, "journal": context.journal.path}

    async def begin(self) -> None:
        hook, long_hook = (
            self._journal.hook(f"sleep {each}") for each in (_HOOK_SECONDS, _LONG_HOOK_SECONDS)
        )
        containers = {
            "polite": self._journal.polite(lifecycle=hook),
            "stubborn": self._journal.stubborn(lifecycle=long_hook),
            "lonely": self._journal.polite(),
        }
        for name, container in containers.items():
            made = pod(name, template(name, container, grace_seconds=_GRACES[name]))
            await self.context.client.create(PODS, made, "default")
        for name in containers:
            [self._pods[name]] = await self.context.until_pods_ready(name, 1)
            began = await self._line(name, "began")
            self.facts |= {f"{name}_node": began.node, f"{name}_pid": began.pid}
        self.facts["places"] = places(list(self._pods.values()))

    # polite

    async def delete_polite(self) -> None:
        answer = await self._delete("polite")
        if not is_terminating(answer):
            raise NotObservedError("polite marked in the response")
        metadata = (await self.context.client.get(PODS, "polite", "default"))["metadata"]
        self._check_running_on(self._pods["polite"])
        self.facts |= {
            "deletion_timestamp": metadata["deletionTimestamp"],
            "deletion_seconds": metadata["deletionGracePeriodSeconds"],
        }

    async def hook_began(self) -> None:
        hook = await self._line("polite", "hook-began")
        self.facts |= {"hook_pid": hook.pid, "killing": await self._event("polite", "Killing")}

    async def terminated(self) -> None:
        hook, end = await self._line("polite", "hook-ended"), await self._line("polite", "ended")
        words = [line.word for line in self._journal.lines("polite")]
        if words != ["began", "hook-began", "hook-ended", "ended"]:
            raise NotObservedError(f"its begin, the hook and its end in this order, but {listed(words)}")
        left = _GRACES["polite"] - (end.at - self._deleted_at)
        self.facts |= {"hook_took": hook.at - self._deleted_at, "polite_left": left}

    async def reported(self) -> None:
        await self._check_outcome("polite", phase="Succeeded", code=0)

    async def removed(self) -> None:
        gone = await self._check_removed("polite")
        try:
            await self.context.client.get(PODS, "polite", "default")
        except NotFoundError:
            self.facts["polite_took"] = gone.at - self._deleted_at
        else:
            raise NotObservedError("404 for polite")

    # stubborn

    async def overrun(self) -> None:
        await self._delete("stubborn")
        hook = await self._line("stubborn", "hook-began")
        asked = await self._line("stubborn", "asked")
        after = asked.at - self._deleted_at
        if after < _GRACES["stubborn"] or self._journal.lines("stubborn", "hook-ended"):
            raise NotObservedError(f"stubborn's hook given its whole grace: TERM came after {after:.1f} s")
        self.facts |= {"stuck_hook_pid": hook.pid, "asked_after": after}

    async def killed(self) -> None:
        await self._check_outcome("stubborn", phase="Failed", code=137)
        gone = await self._check_removed("stubborn")
        after = gone.at - self._deleted_at
        if after < _GRACES["stubborn"] + _LEAST_STOP_SECONDS:
            raise NotObservedError(f"stubborn given 2 s more than its grace: it was over after {after:.1f} s")
        if self._journal.alive("stubborn", node_of(self._pods["stubborn"])):
            raise NotObservedError("the end of stubborn's process")
        self.facts["killed_after"] = after

    # lonely

    async def hanging(self) -> None:
        node = node_of(self._pods["lonely"])
        agent = await self.context.cluster.freeze(node)
        await self._delete("lonely")
        over = self._deleted_at + _GRACES["lonely"] + _HANGING_SECONDS
        while asyncio.get_running_loop().time() < over:
            await asyncio.sleep(0.1)
            self._check_running_on(self._pods["lonely"])
        found = self._recorder.pod("lonely")
        if found is None or not is_terminating(found):
            raise NotObservedError("lonely Terminating")
        self.facts |= {"agent": agent, "hanging_seconds": _HANGING_SECONDS}

    async def finished(self) -> None:
        thawed_at = asyncio.get_running_loop().time()
        self.context.cluster.thaw(node_of(self._pods["lonely"]))
        gone = await self._check_removed("lonely")
        await self._line("lonely", "ended")
        self.facts["returned_took"] = gone.at - thawed_at

    # Shared by several steps

    async def _delete(self, name: str) -> Object:
        self._deleted_at = asyncio.get_running_loop().time()
        options = DeleteOptions(uid=uid_of(self._pods[name]))
        answer: Object = await self.context.client.delete(PODS, name, "default", options=options)
        return answer

    async def _line(self, name: str, word: str) -> JournalEntry:
        def find() -> JournalEntry | None:
            return next(iter(self._journal.lines(name, word)), None)

        return await self._recorder.until(f"{name} in the journal with {word!r}", find)

    async def _event(self, name: str, reason: str) -> str:
        """The message of an event, which is sent in the background."""
        selector = f"involvedObject.uid={uid_of(self._pods[name])},reason={reason}"
        deadline = asyncio.get_running_loop().time() + 20
        while asyncio.get_running_loop().time() < deadline:
            page = await self.context.client.list(
                EVENTS, "default", options=ListOptions(field_selector=selector)
            )
            if page.items:
                return str(page.items[0]["message"])
            await asyncio.sleep(0.1)
        raise NotObservedError(f"the event {reason} of {name}")

    async def _check_outcome(self, name: str, *, phase: str, code: int) -> None:
        def is_over(seen: RecordedObject) -> bool:
            return _exit_code(seen.object) is not None and seen.object["status"].get("phase") == phase

        seen = await self._recorder.until_seen(f"{name} {phase}", uid_of(self._pods[name]), is_over)
        if _exit_code(seen.object) != code:
            raise NotObservedError(f"exit code {code} of {name}, but {_exit_code(seen.object)}")
        self.facts |= {f"{name}_phase": phase, f"{name}_code": code}

    async def _check_removed(self, name: str) -> RecordedObject:
        """An update with a grace period of 0, then the removal."""
        gone = await self._until_gone(self._pods[name])
        updated = [
            each
            for each in self._recorder.history(gone.uid)
            if not each.is_gone and each.object["metadata"].get("deletionGracePeriodSeconds") == 0
        ]
        if not updated:
            raise NotObservedError(f"{name} with a grace of 0 before it was gone")
        return gone


def _exit_code(found: Object) -> int | None:
    for status in (found.get("status") or {}).get("containerStatuses") or ():
        terminated = (status.get("state") or {}).get("terminated")
        return terminated["exitCode"] if terminated else None
    return None


SCENARIO = GracefulDelete
STEPS = (
    DemoStep(
        "Three pods run",
        GracefulDelete.begin,
        what="{places}. polite exits on SIGTERM; stubborn ignores it. Both have a preStop hook: polite's takes "
        "{hook_seconds} s, stubborn's much longer than its grace period.",
        who="the demo created them, the scheduler chose their nodes, the kubelets started them.",
        rule="a pod's spec has its grace period, terminationGracePeriodSeconds: {polite_seconds} s for polite, "
        "{stubborn_seconds} s for stubborn, 30 s by default.",
        see=("kubectl get pods -o wide", "kubectl get pod polite -o yaml"),
    ),
    DemoStep(
        "polite is deleted, which only marks it",
        GracefulDelete.delete_polite,
        what="The response to DELETE is the pod itself, now with deletionTimestamp {deletion_timestamp} and "
        "deletionGracePeriodSeconds {deletion_seconds}. It is still stored, and process {polite_pid} is running. "
        "kubectl shows Terminating only because of the timestamp.",
        who="the API server, at the demo's request (kubectl delete does the same, then waits).",
        rule="with a grace of more than 0 a delete is one update: GD-51. The timestamp is now plus the grace: GD-07.",
        see=("kubectl delete pod polite --wait=false", "kubectl get pod polite -o jsonpath='{{.metadata}}'"),
    ),
    DemoStep(
        "Its node notices, and runs the hook first",
        GracefulDelete.hook_began,
        what="The event Killing ({killing}), then the preStop hook, as process {hook_pid} beside process {polite_pid}, "
        "which has not received a signal yet.",
        who="the kubelet of {polite_node}, which watches the pods of its node.",
        rule="the event comes before the hook: KC-07. The hook runs within the grace period: KC-09.",
        see=("kubectl get events --field-selector involvedObject.name=polite", "kubectl get pod polite"),
    ),
    DemoStep(
        "The hook is done in time: TERM",
        GracefulDelete.terminated,
        what="After {hook_took:.1f} s the hook was done; then process {polite_pid} received SIGTERM, logged it in its "
        "journal and exited, with {polite_left:.0f} of its {polite_seconds} s left.",
        who="the kubelet of {polite_node}.",
        rule="the time the hook took is subtracted from the grace period; the rest, at least 2 s, is for the process: "
        "KC-09, KC-12.",
        see=("cat {journal}",),
    ),
    DemoStep(
        "The node reports the end",
        GracefulDelete.reported,
        what="The status of polite: phase {polite_phase}, container exit code {polite_code}. Only now is it certain "
        "that no process of it is left.",
        who="the kubelet of {polite_node}.",
        rule="the kubelet reports a terminal phase only when no container of the pod can still run, and before the "
        "final delete: SM-30.",
        see=("kubectl get pod polite -o jsonpath='{{.status}}'",),
    ),
    DemoStep(
        "The second delete removes it",
        GracefulDelete.removed,
        what="DELETE with a grace period of 0 and the UID of polite. A watch shows deletionGracePeriodSeconds 0, then "
        "the removal, {polite_took:.1f} s after the first delete; a GET returns 404.",
        who="the kubelet of {polite_node} requests it, the API server removes the pod. Pod GC is not involved.",
        rule="a grace period of 0 is an update and a removal in one: GD-52. By UID, so that a new polite is safe: "
        "SM-30.",
        see=("kubectl get pod polite",),
    ),
    DemoStep(
        "stubborn is deleted: its hook overruns the grace",
        GracefulDelete.overrun,
        what="{stubborn_seconds} s later its hook, process {stuck_hook_pid}, was still running, and the kubelet "
        "stopped waiting: {asked_after:.1f} s after the delete process {stubborn_pid} received SIGTERM, and ignored "
        "it.",
        who="the kubelet of {stubborn_node}.",
        rule="a hook may take the whole grace period, and no more: KC-09. The process then still gets 2 s: KC-12.",
        see=("kubectl delete pod stubborn --wait=false", "cat {journal}"),
    ),
    DemoStep(
        "Two seconds more, then KILL",
        GracefulDelete.killed,
        what="{killed_after:.1f} s after the delete stubborn has ended: exit code {stubborn_code} (128 + 9, SIGKILL), "
        "phase {stubborn_phase}. Its hook was killed too, and the API object was removed as before.",
        who="the kubelet of {stubborn_node}, through its container runtime.",
        rule="{stubborn_seconds} s of grace period for the hook and the minimum of 2 s: KC-12.",
        see=("kubectl get events --field-selector involvedObject.name=stubborn",),
    ),
    DemoStep(
        "A deletion while the kubelet is down",
        GracefulDelete.hanging,
        what="The kubelet of {lonely_node} was stopped (kill -STOP {agent}), then lonely was deleted. Its grace period "
        "of {lonely_seconds} s ended {hanging_seconds:.0f} s ago: it is Terminating, and process {lonely_pid} is "
        "running.",
        who="no component: the API server does not remove the pod without the kubelet's request.",
        rule="the kubelet requests the removal. This is why pods of a dead node hang, and why pod GC exists: "
        "`podlife demo node-failure` continues from here.",
        see=("kubectl get pod lonely -o wide", "ps -o pid,stat,args -p {agent},{lonely_pid}"),
    ),
    DemoStep(
        "The kubelet returns and finishes the deletion",
        GracefulDelete.finished,
        what="Process {lonely_pid} received SIGTERM and exited, and lonely was removed, {returned_took:.1f} s after "
        "the kubelet resumed.",
        who="the kubelet of {lonely_node}.",
        rule="a kubelet compares actual with desired state instead of relying on events: nothing is lost while it is "
        "down.",
        see=("kubectl get pods",),
    ),
)
