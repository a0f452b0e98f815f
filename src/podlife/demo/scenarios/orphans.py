"""`podlife demo orphans`: a node is deleted under its pods. What is told stands here; that it is true is seen to in
`demo_orphans_seen`."""

from __future__ import annotations

from podlife.demo.narrator import Step
from podlife.demo.scenario import Stage
from podlife.demo.scenarios.orphans_checks import Orphans

__all__ = ["STEPS", "begin"]


def begin(stage: Stage) -> Orphans:
    return Orphans(stage)


STEPS = (
    Step(
        "A Deployment runs on three nodes",
        Orphans.begin,
        what="{places}. Each is a process of this machine.",
        who="deployment-controller with its replicaset-controller, the scheduler, and the nodes' agents.",
        rule="a pod is bound to its node by name, spec.nodeName, and for good.",
        see=("kubectl get pods -o wide",),
    ),
    Step(
        "A node is deleted, and is back in time",
        Orphans.back_in_time,
        what="The Node {node} was deleted and, {away_seconds:.1f} s later, registered anew by its agent, with another "
        "UID. {pod} was on it all the time: process {pid} was never touched, and {kept_seconds:.0f} s after the "
        "deletion nobody has collected it.",
        who="the demo deleted it (and killed the agent, since an agent registers its node when it starts); the pod "
        "collector waited.",
        rule="a node must be missing for {quarantine_seconds} s here, 40 s unless told otherwise, before its pods are "
        "orphans: GC-02, GC-50. One that is there again is forgotten: GC-52.",
        see=("kubectl delete node {node}", "kubectl get pods -o wide"),
    ),
    Step(
        "The node is deleted again, and this time its machine hangs",
        Orphans.deleted,
        what="The agent of {node} was stopped (kill -STOP {agent}) and the Node deleted. {pod} is still shown as "
        "{phase}, on a node that is not there; process {pid} runs. Its ReplicaSet counts it, so nothing replaces it.",
        who="the demo, as an autoscaler or an operator who removes a machine that is lost.",
        rule="deleting a Node deletes none of its pods, and evicts none either: there is no node left to be tainted.",
        see=("kubectl get nodes", "kubectl get pods -o wide"),
    ),
    Step(
        "Quarantine, then the pod collector takes the orphan",
        Orphans.collected,
        what="{orphan_seconds:.1f} s after the Node was gone: {pod} marked as {last_phase} with the condition "
        "DisruptionTarget ({reason}: {message}), then deleted with a grace of 0 and the UID that was meant.",
        who="pod-garbage-collector-controller.",
        rule="when the quarantine is over the server is asked once more, and only if it knows no such node the pods "
        "go: GC-52, GC-54. The condition and Failed come first: GC-55, GC-90.",
        see=("kubectl get pods -o wide", "podlife gc plan -o wide"),
    ),
    Step(
        "The ReplicaSet makes another",
        Orphans.replaced,
        what="Ready are {new_places}. {pod} has no record any more, but process {pid} runs to this moment.",
        who="replicaset-controller and the scheduler.",
        rule="a pod that is gone is missing, and what is missing is made.",
        see=("kubectl get pods -o wide", "ps -o pid,args -p {pid}"),
    ),
    Step(
        "The machine goes on, and cleans up",
        Orphans.cleaned,
        what="{clean_seconds:.1f} s after the agent of {node} went on, process {pid} had been told to end, and had "
        "ended. The Node is still gone.",
        who="the agent of {node}.",
        rule="what runs and is not wanted is ended: PW-157. A node that somebody has deleted stays away until "
        "its agent is started again: only that registers it.",
        see=("kubectl get nodes", "ps -o pid,args -p {pid}"),
    ),
    Step(
        "The agent is started again, and the node is back",
        Orphans.registered,
        what="{node} is registered and ready, with no pods of its own. web has its {replicas} pods, each once.",
        who="the demo killed the agent (-9), `podlife up` started it again, and it registered its node.",
        rule="a Node of the same name is another Node: what belonged to the old one is not its own.",
        see=("kubectl get nodes", "kubectl get pods -o wide"),
    ),
)
