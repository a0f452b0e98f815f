"""`podlife demo graceful-delete`: a deletion in ten steps, each made to happen or waited for, checked, and told."""

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
            raise NotObservedError("polite marked by the answer")
        metadata = (await self.context.client.get(PODS, "polite", "default"))["metadata"]
        self._check_running_on(self._pods["polite"])
        self.facts |= {
            "deletion_timestamp": metadata["deletionTimestamp"],
            "deletion_seconds": metadata["deletionGracePeriodSeconds"],
        }

    async def hook_began(self) -> None:
        hook = await self._line("polite", "hook-began")
        self.facts |= {"hook_pid": hook.pid, "killing": await self._event("polite", "Killing")}

    async def told_to_end(self) -> None:
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
            raise NotObservedError(f"the whole grace for the hook of stubborn: TERM came after {after:.1f} s")
        self.facts |= {"stuck_hook_pid": hook.pid, "asked_after": after}

    async def killed(self) -> None:
        await self._check_outcome("stubborn", phase="Failed", code=137)
        gone = await self._check_removed("stubborn")
        after = gone.at - self._deleted_at
        if after < _GRACES["stubborn"] + _LEAST_STOP_SECONDS:
            raise NotObservedError(
                f"2 s more than its grace for stubborn, which was over after {after:.1f} s"
            )
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

    # What several steps do

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
        """The message of an event. Events are sent in the background, so it may take a moment."""
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
        """First the update, then the removal."""
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
        what="{places}. polite ends when it is told to; stubborn hears that and goes on. Both have a preStop hook: the "
        "one of polite takes {hook_seconds} s, the one of stubborn much longer than it is given.",
        who="the demo made them, the scheduler chose their nodes, the nodes' agents started them.",
        rule="how long a pod may take to end is in its spec: terminationGracePeriodSeconds, {polite_seconds} s for "
        "polite, {stubborn_seconds} s for stubborn, 30 s where nothing is said.",
        see=("kubectl get pods -o wide", "kubectl get pod polite -o yaml"),
    ),
    DemoStep(
        "polite is deleted, which only marks it",
        GracefulDelete.delete_polite,
        what="The answer to DELETE is the pod itself, now with deletionTimestamp {deletion_timestamp} and "
        "deletionGracePeriodSeconds {deletion_seconds}. It is still stored, and process {polite_pid} runs. kubectl "
        "shows Terminating, for no other reason than the timestamp.",
        who="the API server, asked by the demo (kubectl delete does the same, then waits).",
        rule="with a grace of more than 0 a delete is one update: GD-51. The timestamp is now plus the grace: GD-07.",
        see=("kubectl delete pod polite --wait=false", "kubectl get pod polite -o jsonpath='{{.metadata}}'"),
    ),
    DemoStep(
        "Its node notices, and runs the hook first",
        GracefulDelete.hook_began,
        what="The event Killing ({killing}), then the preStop hook, as process {hook_pid} beside process {polite_pid}, "
        "which had not been told anything yet.",
        who="the agent of {polite_node}, which watches the pods of its node.",
        rule="the event comes before the hook: KC-07. The hook runs within the grace, which counts already: KC-09.",
        see=("kubectl get events --field-selector involvedObject.name=polite", "kubectl get pod polite"),
    ),
    DemoStep(
        "The hook is done in time: TERM",
        GracefulDelete.told_to_end,
        what="After {hook_took:.1f} s the hook was done; then process {polite_pid} got SIGTERM, said so in its journal "
        "and ended by itself, with {polite_left:.0f} of its {polite_seconds} s left.",
        who="the agent of {polite_node}.",
        rule="what the hook took is subtracted from the grace; the rest, and never less than 2 s, is for the process: "
        "KC-09, KC-12.",
        see=("cat {journal}",),
    ),
    DemoStep(
        "The node reports the end",
        GracefulDelete.reported,
        what="The status of polite: phase {polite_phase}, container ended with exit code {polite_code}. Only now "
        "nothing of it can run any more.",
        who="the agent of {polite_node}.",
        rule="a terminal phase is withheld while something of the pod could still run, and told before the last "
        "delete: SM-30.",
        see=("kubectl get pod polite -o jsonpath='{{.status}}'",),
    ),
    DemoStep(
        "The second delete removes it",
        GracefulDelete.removed,
        what="DELETE with a grace of 0 and the UID of this very polite. Whoever watches sees "
        "deletionGracePeriodSeconds 0, then the removal, {polite_took:.1f} s after the first delete; "
        "whoever asks is told 404.",
        who="the agent of {polite_node} asks, the API server removes. The pod collector had no part in it.",
        rule="a grace of 0 is an update and a removal in one: GD-52. By UID, so that a new polite is safe: SM-30.",
        see=("kubectl get pod polite",),
    ),
    DemoStep(
        "stubborn is deleted: its hook overruns the grace",
        GracefulDelete.overrun,
        what="{stubborn_seconds} s later its hook, process {stuck_hook_pid}, had not ended. It was not waited for any "
        "longer: {asked_after:.1f} s after the delete process {stubborn_pid} got SIGTERM, and went on all the same.",
        who="the agent of {stubborn_node}.",
        rule="a hook may take the whole grace, and no more: KC-09. Where nothing is left 2 s are given: KC-12.",
        see=("kubectl delete pod stubborn --wait=false", "cat {journal}"),
    ),
    DemoStep(
        "Two seconds more, then KILL",
        GracefulDelete.killed,
        what="{killed_after:.1f} s after the delete stubborn is over: exit code {stubborn_code} (128 + 9, SIGKILL), "
        "phase {stubborn_phase}. Its hook went with it, and the record as before.",
        who="the agent of {stubborn_node}, by way of what supervises its containers.",
        rule="{stubborn_seconds} s of grace for the hook and the 2 s that everybody gets: KC-12.",
        see=("kubectl get events --field-selector involvedObject.name=stubborn",),
    ),
    DemoStep(
        "A deletion while the node's agent is silent",
        GracefulDelete.hanging,
        what="The agent of {lonely_node} was stopped (kill -STOP {agent}), then lonely was deleted. Its grace of "
        "{lonely_seconds} s was over {hanging_seconds:.0f} s ago: it is Terminating, and process {lonely_pid} runs.",
        who="nobody: the API server will not remove it by itself, and nobody else may.",
        rule="it is the node that asks for the removal. This is why pods of a dead node hang, and why there is a pod "
        "collector: `podlife demo node-failure` goes on from here.",
        see=("kubectl get pod lonely -o wide", "ps -o pid,stat,args -p {agent},{lonely_pid}"),
    ),
    DemoStep(
        "The agent returns, and the deletion is finished",
        GracefulDelete.finished,
        what="Process {lonely_pid} got its SIGTERM, ended, and lonely is gone, {returned_took:.1f} s after the agent "
        "went on.",
        who="the agent of {lonely_node}.",
        rule="what is to be done follows from what runs and what is wanted, not from who heard what when: nothing is "
        "lost while an agent is away.",
        see=("kubectl get pods",),
    ),
)
