"""`podlife demo graceful-delete`: a deletion in ten steps. What is told stands here; that it is true is seen to in
`demo_graceful_delete_seen`."""

from __future__ import annotations

from podlife.demo.narrator import Step
from podlife.demo.scenario import Stage
from podlife.demo.scenarios.graceful_delete_checks import GracefulDelete

__all__ = ["STEPS", "begin"]


def begin(stage: Stage) -> GracefulDelete:
    return GracefulDelete(stage)


STEPS = (
    Step(
        "Three pods run",
        GracefulDelete.begin,
        what="{places}. polite ends when it is told to; stubborn hears that and goes on. Both have a preStop hook: the "
        "one of polite takes {hook_seconds} s, the one of stubborn much longer than it is given.",
        who="the demo made them, the scheduler chose their nodes, the nodes' agents started them.",
        rule="how long a pod may take to end is in its spec: terminationGracePeriodSeconds, {polite_seconds} s for "
        "polite, {stubborn_seconds} s for stubborn, 30 s where nothing is said.",
        see=("kubectl get pods -o wide", "kubectl get pod polite -o yaml"),
    ),
    Step(
        "polite is deleted, which only marks it",
        GracefulDelete.delete_polite,
        what="The answer to DELETE is the pod itself, now with deletionTimestamp {deletion_timestamp} and "
        "deletionGracePeriodSeconds {deletion_seconds}. It is still stored, and process {polite_pid} runs. kubectl "
        "shows Terminating, for no other reason than the timestamp.",
        who="the API server, asked by the demo (kubectl delete does the same, then waits).",
        rule="with a grace of more than 0 a delete is one update: GD-51. The timestamp is now plus the grace: GD-07.",
        see=("kubectl delete pod polite --wait=false", "kubectl get pod polite -o jsonpath='{{.metadata}}'"),
    ),
    Step(
        "Its node notices, and runs the hook first",
        GracefulDelete.hook_began,
        what="The event Killing ({killing}), then the preStop hook, as process {hook_pid} beside process {polite_pid}, "
        "which had not been told anything yet.",
        who="the agent of {polite_node}, which watches the pods of its node.",
        rule="the event comes before the hook: KC-07. The hook runs within the grace, which counts already: KC-09.",
        see=("kubectl get events --field-selector involvedObject.name=polite", "kubectl get pod polite"),
    ),
    Step(
        "The hook is done in time: TERM",
        GracefulDelete.told_to_end,
        what="After {hook_took:.1f} s the hook was done; then process {polite_pid} got SIGTERM, said so in its journal "
        "and ended by itself, with {polite_left:.0f} of its {polite_seconds} s left.",
        who="the agent of {polite_node}.",
        rule="what the hook took is subtracted from the grace; the rest, and never less than 2 s, is for the process: "
        "KC-09, KC-12.",
        see=("cat {journal}",),
    ),
    Step(
        "The node reports the end",
        GracefulDelete.reported,
        what="The status of polite: phase {polite_phase}, container ended with exit code {polite_code}. Only now "
        "nothing of it can run any more.",
        who="the agent of {polite_node}.",
        rule="a terminal phase is withheld while something of the pod could still run, and told before the last "
        "delete: SM-30.",
        see=("kubectl get pod polite -o jsonpath='{{.status}}'",),
    ),
    Step(
        "The second delete removes it",
        GracefulDelete.removed,
        what="DELETE with a grace of 0 and the UID of this very polite. Whoever watches sees "
        "deletionGracePeriodSeconds 0, then the removal, {polite_took:.1f} s after the first delete; "
        "whoever asks is told 404.",
        who="the agent of {polite_node} asks, the API server removes. The pod collector had no part in it.",
        rule="a grace of 0 is an update and a removal in one: GD-52. By UID, so that a new polite is safe: SM-30.",
        see=("kubectl get pod polite",),
    ),
    Step(
        "stubborn is deleted: its hook overruns the grace",
        GracefulDelete.overrun,
        what="{stubborn_seconds} s later its hook, process {stuck_hook_pid}, had not ended. It was not waited for any "
        "longer: {asked_after:.1f} s after the delete process {stubborn_pid} got SIGTERM, and went on all the same.",
        who="the agent of {stubborn_node}.",
        rule="a hook may take the whole grace, and no more: KC-09. Where nothing is left 2 s are given: KC-12.",
        see=("kubectl delete pod stubborn --wait=false", "cat {journal}"),
    ),
    Step(
        "Two seconds more, then KILL",
        GracefulDelete.killed,
        what="{killed_after:.1f} s after the delete stubborn is over: exit code {stubborn_code} (128 + 9, SIGKILL), "
        "phase {stubborn_phase}. Its hook went with it, and the record as before.",
        who="the agent of {stubborn_node}, by way of what supervises its containers.",
        rule="{stubborn_seconds} s of grace for the hook and the 2 s that everybody gets: KC-12.",
        see=("kubectl get events --field-selector involvedObject.name=stubborn",),
    ),
    Step(
        "A deletion while the node's agent is silent",
        GracefulDelete.hanging,
        what="The agent of {lonely_node} was stopped (kill -STOP {agent}), then lonely was deleted. Its grace of "
        "{lonely_seconds} s was over {hanging_seconds:.0f} s ago: it is Terminating, and process {lonely_pid} runs.",
        who="nobody: the API server will not remove it by itself, and nobody else may.",
        rule="it is the node that asks for the removal. This is why pods of a dead node hang, and why there is a pod "
        "collector: `podlife demo node-failure` goes on from here.",
        see=("kubectl get pod lonely -o wide", "ps -o pid,stat,args -p {agent},{lonely_pid}"),
    ),
    Step(
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
