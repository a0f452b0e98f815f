"""`podlife demo node-failure`: a node falls silent, and what becomes of its pods. What is told stands here; that it is
true is seen to in `demo_node_failure_seen`."""

from __future__ import annotations

from podlife.demo.narrator import Step
from podlife.demo.scenario import Stage
from podlife.demo.scenarios.node_failure_checks import NodeFailure

__all__ = ["STEPS", "begin"]


def begin(stage: Stage) -> NodeFailure:
    return NodeFailure(stage)


STEPS = (
    Step(
        "A StatefulSet and a Deployment run on three nodes",
        NodeFailure.begin,
        what="{places}. Each is a process of this machine.",
        who="statefulset-controller, and deployment-controller with its replicaset-controller, made the pods; the "
        "scheduler chose their nodes; the nodes' agents started them.",
        rule="a StatefulSet gives its pods names, and starts them in order, each when the one before is ready; the "
        "pods of a Deployment are all alike.",
        see=("kubectl get pods -o wide",),
    ),
    Step(
        "A node falls silent",
        NodeFailure.silence,
        what="The agent of {node} was stopped where it stood (kill -STOP {agent}), as on a machine that hangs. Its "
        "pods run on: {db} is process {old_pid}. Nobody in the cluster knows of either.",
        who="the demo.",
        rule="an agent renews its node's lease, here every {renew_seconds:g} s (10 s unless told otherwise). That is "
        "all that anybody hears of it.",
        see=(
            "kubectl get lease -n kube-node-lease {node} -o yaml",
            "ps -o pid,stat,args -p {agent},{old_pid}",
        ),
    ),
    Step(
        "The node is shown as not ready, and tainted",
        NodeFailure.not_ready,
        what="{silent_seconds:.0f} s after it fell silent {node} has Ready={ready} ({reason}: {message}) and the taint "
        "node.kubernetes.io/unreachable, once for NoSchedule and once for NoExecute. Its pods are marked not ready.",
        who="node-lifecycle-controller.",
        rule="a node may be silent for {monitor_grace_seconds} s here (--node-monitor-grace-period, 40 s unless told "
        "otherwise): NL-12, NL-15. Unknown becomes the taint unreachable: NL-50, NL-60. Its pods are not ready: NL-40.",
        see=("kubectl get nodes", "kubectl describe node {node}"),
    ),
    Step(
        "Its pods are evicted",
        NodeFailure.evicted,
        what="{victims}: first the condition DisruptionTarget (DeletionByTaintManager), then a deletionTimestamp with "
        "{grace_seconds} s of grace. They are Terminating, and no more than that: nothing has been removed.",
        who="taint-eviction-controller. The time they had was given to them when they were created, by the API server.",
        rule="a pod tolerates unreachable:NoExecute for {toleration_seconds} s here, 300 s unless told otherwise: "
        "DT-02, TE-07. The condition comes before the delete: TE-16.",
        see=(
            "kubectl get pods -o wide",
            "kubectl get pod {db} -o jsonpath='{{.spec.tolerations}}'",
            "kubectl get events --field-selector reason=TaintManagerEviction",
        ),
    ),
    Step(
        "The Deployment has its replacement at once",
        NodeFailure.replaced,
        what="Ready are {webs}, while the old one is still Terminating.",
        who="replicaset-controller and the scheduler.",
        rule="for a ReplicaSet a pod that is Terminating does not count: it makes another, of another name. The taint "
        "of the node keeps the scheduler away from it.",
        see=("kubectl get pods -l app=web -o wide",),
    ),
    Step(
        "The StatefulSet is stuck, its pod is Terminating for ever",
        NodeFailure.stuck,
        what="{db} is still there under the same UID, {stuck_seconds:.0f} s after its grace was over, and db has "
        "{ready_dbs} of its {replicas} pods. Process {old_pid} runs on {node} to this moment: a second {db} would "
        "write to the same volume.",
        who="nobody, and that is the point: only the agent of {node} may say that the pod has ended.",
        rule="the API server keeps a pod until its node confirms the end by a second delete, with a grace of 0: GD-51, "
        "GD-52. A StatefulSet never has two pods of one name, so it waits.",
        see=("kubectl get pod {db} -o wide", "kubectl get statefulset db"),
    ),
    Step(
        "Somebody says that the machine is off",
        NodeFailure.out_of_service,
        what="{node} has the taint node.kubernetes.io/out-of-service. It is the promise of whoever sets it that "
        "nothing runs there any more. (The demo lies here, and shows in a moment what comes of it.)",
        who="an operator, or whatever switches machines off; here the demo.",
        rule="no controller sets this taint: out of silence alone nobody can tell a machine that is off from a network "
        "that is cut.",
        see=("kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",),
    ),
    Step(
        "The pod collector removes what nobody else may",
        NodeFailure.collected,
        what="{victims} are gone: marked as {last_phase}, then deleted with a grace of 0 and the UID that was meant. "
        "The API server knows nothing of them any more.",
        who="pod-garbage-collector-controller.",
        rule="a pod that is Terminating, on a node that is not ready and has the taint out-of-service, is collected: "
        "GC-30. Upstream looks every 20 s; here it happens as soon as it is so.",
        see=("kubectl get pods -o wide",),
    ),
    Step(
        "The StatefulSet goes on elsewhere",
        NodeFailure.successor,
        what="{db} runs on {new_node} as process {new_pid}, under a new UID, and db has all of its pods. The old "
        "process {old_pid} runs as well: this is what the promise was about.",
        who="statefulset-controller and the scheduler.",
        rule="the name is free, so the StatefulSet makes its pod again, and its node is chosen anew.",
        see=("kubectl get pods -l app=db -o wide", "ps -o pid,args -p {old_pid},{new_pid}"),
    ),
    Step(
        "The node comes back, and cleans up after itself",
        NodeFailure.returned,
        what="{node} is ready, and the taints unreachable are gone. Process {old_pid} was told to end (SIGTERM, then "
        "its grace) and has ended. No other pod was touched.",
        who="the agent of {node} cleans up; node-lifecycle-controller takes off its taints.",
        rule="an agent compares what runs with what is wanted, and ends what is not: PW-157. A node that is "
        "ready has no such taints: NL-53.",
        see=("kubectl get nodes", "ps -o pid,args -p {old_pid}"),
    ),
    Step(
        "The node is in service again",
        NodeFailure.in_service,
        what="The taint out-of-service is off, and {node} takes pods again. db and web have all their pods, each once, "
        "and nothing is Terminating.",
        who="whoever has set it; here the demo.",
        rule="nobody else takes this taint off. Pods that run elsewhere by now stay there.",
        see=("kubectl taint nodes {node} node.kubernetes.io/out-of-service-", "kubectl get pods -o wide"),
    ),
)
