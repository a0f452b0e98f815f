"""Jobs: pods that run to their end, what becomes of those that fail, and when it is enough.

A pod that failed is replaced after ten seconds, so most of what is about failures ends with the first one."""

from __future__ import annotations

import asyncio
from typing import Any

from podlife.client import CONFIG_MAPS, JOBS, PODS
from tests.kit import objects
from tests.workloads.node import PENDING, Behaviour, Predicate, exits, fails, named
from tests.workloads.objects import Object, labelled_pod, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

DONE = exits(0)
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def job(restart: str = "Never", **spec: Any) -> Object:
    made = template("work", restartPolicy=restart)
    return {"metadata": {"name": "work", "labels": {"app": "work"}}, "spec": {"template": made, **spec}}


def indexed(completions: int, parallelism: int | None = None, **spec: Any) -> Object:
    return job(
        completions=completions,
        parallelism=completions if parallelism is None else parallelism,
        completionMode="Indexed",
        **spec,
    )


def adopting(**spec: Any) -> Object:
    """A Job that selects pods by a label that others may have."""
    return job(manualSelector=True, selector={"matchLabels": {"app": "work"}}, **spec)


def index(*numbers: int) -> Predicate:
    wanted = {str(number) for number in numbers}
    return lambda pod: (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX) in wanted


async def start(world: World, made: Object, active: int) -> list[Object]:
    """The pods, once all of them run and the status says so."""
    await world.create(JOBS, made)
    await world.until_status(JOBS, "work", active=active, ready=active)
    return world.pods(app="work")


async def until_condition(world: World, type_: str, status: str = "True") -> None:
    def holds() -> bool:
        conditions = world.status(JOBS, "work").get("conditions") or []
        return any(each["type"] == type_ and each["status"] == status for each in conditions)

    await world.until(f"the Job is {type_}", holds)


async def until_running(world: World, name: str) -> None:
    await world.until(f"{name} runs", lambda: world.status(PODS, name).get("phase") == "Running")


def name_of(pod: Object) -> str:
    name: str = pod["metadata"]["name"]
    return name


# Completions and parallelism


@scenario("job")
async def one_pod_completes(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, job())
    await until_condition(world, "Complete")


@scenario("job")
async def more_completions_than_parallelism(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, job(completions=5, parallelism=2))
    await until_condition(world, "Complete")


@scenario("job")
async def completions_half_way(world: World) -> None:
    pods = await start(world, job(completions=4, parallelism=2), 2)
    world.node.let(DONE, named(name_of(pods[0])))
    await world.until_status(JOBS, "work", succeeded=1, active=2, ready=2)


@scenario("job")
async def no_completions_wanted(world: World) -> None:
    await world.create(JOBS, job(completions=0))
    await until_condition(world, "Complete")


@scenario("job")
async def work_queue_is_empty(world: World) -> None:
    """Once one worker has succeeded no other is begun, and those at work finish."""
    pods = await start(world, job(parallelism=3), 3)
    world.node.let(DONE, named(name_of(pods[0])))
    await world.until_status(JOBS, "work", succeeded=1, active=2, ready=2)
    world.node.let(DONE)
    await until_condition(world, "Complete")


@scenario("job")
async def parallelism_raised(world: World) -> None:
    await start(world, job(completions=6, parallelism=2), 2)
    await world.patch(JOBS, "work", {"spec": {"parallelism": 4}})
    await world.until_status(JOBS, "work", active=4, ready=4)


@scenario("job")
async def parallelism_lowered(world: World) -> None:
    """Pods that are taken back count as nothing."""
    await start(world, job(completions=6, parallelism=4), 4)
    await world.patch(JOBS, "work", {"spec": {"parallelism": 1}})
    await world.until_status(JOBS, "work", active=1, ready=1, terminating=0)


@scenario("job")
async def parallelism_zero(world: World) -> None:
    await start(world, job(completions=2, parallelism=2), 2)
    await world.patch(JOBS, "work", {"spec": {"parallelism": 0}})
    await world.until_status(JOBS, "work", active=0, terminating=0)


@scenario("job")
async def more_succeeded_than_wanted(world: World) -> None:
    """Two pods that have succeeded are adopted where one would do."""
    world.node.let(DONE)
    for name in ("first", "second"):
        await world.create(PODS, labelled_pod(name, "work"))
    await world.until(
        "both have succeeded", lambda: all(pod["status"]["phase"] == "Succeeded" for pod in world.pods())
    )
    await world.create(JOBS, adopting())
    await until_condition(world, "Complete")


# Indexes


@scenario("job")
async def indexed_completes(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, indexed(4, 2))
    await until_condition(world, "Complete")


@scenario("job")
async def indexed_with_gaps(world: World) -> None:
    await start(world, indexed(6), 6)
    world.node.let(DONE, index(0, 2, 3, 4))
    await world.until_status(JOBS, "work", succeeded=4, completedIndexes="0,2-4", active=2, ready=2)


@scenario("job")
async def indexed_knows_its_index(world: World) -> None:
    """By label, annotation, hostname and environment; a variable of its own of that name stays."""
    made = indexed(2)
    own = {"name": "JOB_COMPLETION_INDEX", "value": "mine"}
    made["spec"]["template"]["spec"]["initContainers"] = [{"name": "before", "image": "registry.example/i:1"}]
    made["spec"]["template"]["spec"]["containers"].append(
        {"name": "beside", "image": "registry.example/b:1", "env": [own]}
    )
    await start(world, made, 2)


@scenario("job")
async def indexed_scaled_down_and_up(world: World) -> None:
    """An elastic indexed Job: indexes that are not wanted any more are not counted."""
    await start(world, indexed(4), 4)
    world.node.let(DONE, index(0, 3))
    await world.until_status(JOBS, "work", succeeded=2, completedIndexes="0,3", active=2, ready=2)
    await world.patch(JOBS, "work", {"spec": {"completions": 2, "parallelism": 2}})
    await world.until_status(JOBS, "work", succeeded=1, active=1, ready=1, terminating=0)
    await world.patch(JOBS, "work", {"spec": {"completions": 3, "parallelism": 3}})
    await world.until_status(JOBS, "work", succeeded=1, active=2, ready=2)


@scenario("job")
async def index_fails_for_itself(world: World) -> None:
    world.node.let(exits(1), index(1))
    world.node.let(DONE, index(0, 2))
    await world.create(JOBS, indexed(3, backoffLimitPerIndex=0))
    await until_condition(world, "Failed")


@scenario("job")
async def index_is_tried_again(world: World) -> None:
    """The replacement knows how often its index has failed."""
    world.node.let(exits(1), index(1))
    await world.create(JOBS, indexed(2, backoffLimitPerIndex=1))
    await world.until_status(JOBS, "work", failed=2, failedIndexes="1")
    world.node.let(DONE, index(0))
    await until_condition(world, "Failed")


@scenario("job")
async def too_many_indexes_fail(world: World) -> None:
    await start(world, indexed(5, backoffLimitPerIndex=0, maxFailedIndexes=1), 5)
    world.node.let(exits(1), index(1))
    await world.until_status(JOBS, "work", failedIndexes="1", failed=1)
    world.node.let(exits(1), index(3))
    await until_condition(world, "Failed")


@scenario("job")
async def success_policy_of_one_index(world: World) -> None:
    rules = [{"succeededIndexes": "1-2"}, {"succeededIndexes": "0"}]
    await start(world, indexed(4, successPolicy={"rules": rules}), 4)
    world.node.let(DONE, index(0))
    await until_condition(world, "Complete")


@scenario("job")
async def success_policy_of_a_count(world: World) -> None:
    rules = [{"succeededIndexes": "1-3", "succeededCount": 2}]
    await start(world, indexed(4, successPolicy={"rules": rules}), 4)
    world.node.let(DONE, index(0, 1))
    await world.until_status(JOBS, "work", succeeded=2)
    world.node.let(DONE, index(3))
    await until_condition(world, "Complete")


# Failures


@scenario("job")
async def failed_pod_is_replaced(world: World) -> None:
    (pod,) = await start(world, job(), 1)
    world.node.let(exits(1), named(name_of(pod)))
    await world.until_status(JOBS, "work", failed=1, active=1, ready=1)
    world.node.let(DONE)
    # The pod that has failed stays failed.
    world.node.let(exits(1), named(name_of(pod)))
    await until_condition(world, "Complete")


@scenario("job")
async def backoff_limit_exceeded(world: World) -> None:
    """The pods that are still at work go, and count as failed."""
    pods = await start(world, job(completions=3, parallelism=3, backoffLimit=0), 3)
    world.node.let(exits(1), named(name_of(pods[0])))
    await until_condition(world, "Failed")


@scenario("job")
async def pods_are_slow_to_go_when_it_fails(world: World) -> None:
    """The Job has not failed before its last pod is at its end."""
    pods = await start(world, job(completions=2, parallelism=2, backoffLimit=0), 2)
    world.node.hold()
    world.node.let(exits(1), named(name_of(pods[0])))
    await until_condition(world, "FailureTarget")
    await world.until_status(JOBS, "work", terminating=1, active=0)
    await world.settle()
    world.node.let_go()
    await until_condition(world, "Failed")


@scenario("job")
async def containers_restart_too_often(world: World) -> None:
    (pod,) = await start(world, job("OnFailure", backoffLimit=2), 1)
    statuses = pod["status"]["containerStatuses"]
    await world.set_pod_status(pod, {"containerStatuses": [{**each, "restartCount": 2} for each in statuses]})
    await until_condition(world, "Failed")


@scenario("job")
async def active_for_too_long(world: World) -> None:
    await start(world, job(completions=2, parallelism=2, activeDeadlineSeconds=15), 2)
    await until_condition(world, "Failed")


@scenario("job")
async def pod_deleted(world: World) -> None:
    """It counts as failed as soon as it begins to go, and is replaced while it still does."""
    pods = await start(world, job(completions=2, parallelism=2), 2)
    world.node.hold()
    await world.delete(PODS, name_of(pods[0]))
    await world.until_status(JOBS, "work", failed=1, active=1, terminating=1)
    await world.until_status(JOBS, "work", failed=1, active=2, ready=2, terminating=1)


@scenario("job")
async def pod_lost(world: World) -> None:
    """Its object stays until it is counted."""
    pods = await start(world, job(completions=2, parallelism=2), 2)
    await world.lose(pods[0])
    await world.until_status(JOBS, "work", failed=1, active=2, ready=2, terminating=0)


@scenario("job")
async def pods_wait_for_a_node(world: World) -> None:
    world.node.let(PENDING)
    await world.create(JOBS, job(completions=3, parallelism=2))
    await world.until_status(JOBS, "work", active=2)


# Policies


def policy(*rules: Object, **spec: Any) -> Object:
    return job(podFailurePolicy={"rules": list(rules)}, **spec)


def on_exit(action: str, *codes: int, operator: str = "In", **more: Any) -> Object:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes), **more}}


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
IGNORE_DISRUPTION = {"action": "Ignore", "onPodConditions": [DISRUPTED]}


@scenario("job")
async def policy_fails_the_job(world: World) -> None:
    pods = await start(world, policy(on_exit("FailJob", 42), completions=2, parallelism=2), 2)
    world.node.let(exits(42), named(name_of(pods[0])))
    await until_condition(world, "Failed")


@scenario("job")
async def policy_fails_the_job_for_a_condition(world: World) -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}]}
    (pod,) = await start(world, policy(rule), 1)
    broken = fails(reason="Broken", message="no such file", conditions={"ConfigIssue": "Missing"})
    world.node.let(broken, named(name_of(pod)))
    await until_condition(world, "Failed")


def disruption() -> Behaviour:
    return fails(
        reason="Evicted", message="preempted", conditions={"DisruptionTarget": "PreemptionByScheduler"}
    )


@scenario("job")
async def policy_ignores_a_disruption(world: World) -> None:
    """Even with no failure allowed at all the pod is replaced."""
    (pod,) = await start(world, policy(IGNORE_DISRUPTION, on_exit("FailJob", 1), backoffLimit=0), 1)
    world.node.let(disruption(), named(name_of(pod)))
    await world.until("another one runs", lambda: [*world.living()] and len(world.pods()) == 2)
    await world.until_status(JOBS, "work", active=1, ready=1)


@scenario("job")
async def policy_counts(world: World) -> None:
    """The first rule that matches decides: what counts exceeds the limit."""
    rules = (on_exit("Count", 7), on_exit("Ignore", 0, operator="NotIn"))
    pods = await start(world, policy(*rules, completions=2, parallelism=2, backoffLimit=0), 2)
    world.node.let(exits(7), named(name_of(pods[0])))
    await until_condition(world, "Failed")


@scenario("job")
async def policy_fails_an_index(world: World) -> None:
    """Without trying it again, as its limit would allow."""
    made = indexed(
        3, backoffLimitPerIndex=5, podFailurePolicy={"rules": [on_exit("FailIndex", 3, containerName="main")]}
    )
    await start(world, made, 3)
    world.node.let(exits(3), index(1))
    await world.until_status(JOBS, "work", failedIndexes="1", failed=1, active=2, ready=2)
    world.node.let(DONE, index(0, 2))
    await until_condition(world, "Failed")


@scenario("job")
async def replaced_only_when_it_has_failed(world: World) -> None:
    pods = await start(world, job(completions=2, parallelism=2, podReplacementPolicy="Failed"), 2)
    world.node.hold()
    await world.delete(PODS, name_of(pods[0]))
    await world.until_status(JOBS, "work", active=1, terminating=1)
    await world.settle()


@scenario("job")
async def going_pod_succeeds_after_all(world: World) -> None:
    """Where only failed pods are replaced, one that was asked to go may still succeed."""
    pods = await start(world, job(completions=2, parallelism=2, podReplacementPolicy="Failed"), 2)
    world.node.hold()
    await world.delete(PODS, name_of(pods[0]))
    await world.until_status(JOBS, "work", active=1, terminating=1)
    await world.set_pod_status(pods[0], {"phase": "Succeeded"})
    await world.until_status(JOBS, "work", succeeded=1, terminating=0)
    world.node.let_go()
    world.node.let(DONE)
    await until_condition(world, "Complete")


# Suspended, or left to others


@scenario("job")
async def suspended_from_the_start(world: World) -> None:
    await world.create(JOBS, job(suspend=True))
    await until_condition(world, "Suspended")


@scenario("job")
async def suspended_at_work(world: World) -> None:
    """Its pods go and count as nothing; it has not started any more."""
    await start(world, job(completions=3, parallelism=2), 2)
    await world.patch(JOBS, "work", {"spec": {"suspend": True}})
    await until_condition(world, "Suspended")
    await world.until_status(JOBS, "work", active=0, terminating=0)


@scenario("job")
async def suspended_changed_and_resumed(world: World) -> None:
    """While it is suspended its template may be changed."""
    await world.create(JOBS, job(suspend=True, completions=2, parallelism=2))
    await until_condition(world, "Suspended")
    await world.patch(JOBS, "work", {"spec": {"template": {"metadata": {"labels": {"colour": "blue"}}}}})
    await world.patch(JOBS, "work", {"spec": {"suspend": False}})
    await world.until_status(JOBS, "work", active=2, ready=2)
    world.node.let(DONE)
    await until_condition(world, "Complete")


@scenario("job")
async def managed_by_another(world: World) -> None:
    await world.create(JOBS, job(managedBy="example.com/elsewhere"))
    await world.settle(seconds=3)


# Adopted and released


@scenario("job")
async def pod_adopted(world: World) -> None:
    await world.create(PODS, labelled_pod("orphan", "work"))
    await world.until("it runs", world.living)
    await world.create(JOBS, adopting(completions=2, parallelism=2))
    await world.until_status(JOBS, "work", active=2, ready=2)


@scenario("job")
async def pod_of_another_is_left_alone(world: World) -> None:
    owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "owner"}})
    reference = objects.owner("ConfigMap", "owner", api_version="v1", uid=owner["metadata"]["uid"])
    await world.create(PODS, labelled_pod("theirs", "work", ownerReferences=[reference]))
    await world.create(JOBS, adopting())
    await world.until_status(JOBS, "work", active=1, ready=1)


@scenario("job")
async def two_pods_of_one_index(world: World) -> None:
    """The one that has run for less time goes, and so does a pod without an index."""
    for name, number in (("older", "0"), ("newer", "0"), ("stray", None)):
        annotations = {COMPLETION_INDEX: number} if number else {}
        await world.create(PODS, labelled_pod(name, "work", annotations=annotations))
        await until_running(world, name)
        # Times are in seconds.
        await asyncio.sleep(2)
    await world.until_pods(3)
    await world.create(JOBS, adopting(completions=2, parallelism=2, completionMode="Indexed"))
    await world.until_status(JOBS, "work", active=2, ready=2, terminating=0)


@scenario("job")
async def failed_pod_adopted(world: World) -> None:
    """It counts, as if it had been made here."""
    world.node.let(exits(1), named("orphan"))
    await world.create(PODS, labelled_pod("orphan", "work"))
    await world.until("it has failed", lambda: world.pods() and not world.living())
    await world.create(JOBS, adopting(backoffLimit=0))
    await until_condition(world, "Failed")


@scenario("job")
async def pod_released(world: World) -> None:
    """It goes on for itself, without the finalizer, and another one is made."""
    pods = await start(world, job(completions=2, parallelism=2), 2)
    await world.relabel(pods[0], {"batch.kubernetes.io/controller-uid": "nobody"})
    await world.until("there is a third", lambda: len(world.living()) == 3)
    await world.until_status(JOBS, "work", active=2, ready=2)


# The end of a Job


@scenario("job")
async def deleted_in_background(world: World) -> None:
    await start(world, job(completions=2, parallelism=2), 2)
    await world.delete(JOBS, "work")
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


@scenario("job")
async def deleted_in_foreground(world: World) -> None:
    await start(world, job(completions=2, parallelism=2), 2)
    await world.delete(JOBS, "work", cascade="Foreground")
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


@scenario("job")
async def deleted_and_waiting_for_its_pods(world: World) -> None:
    """It stays as long as they do, and makes no others; they are held by nothing but their end."""
    await start(world, job(completions=2, parallelism=2), 2)
    world.node.hold()
    await world.delete(JOBS, "work", cascade="Foreground")
    await world.until(
        "nothing holds the pods", lambda: all(not pod["metadata"].get("finalizers") for pod in world.pods())
    )
    await world.until_status(JOBS, "work", terminating=2)


@scenario("job")
async def deleted_when_it_has_finished(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, job(completions=2))
    await until_condition(world, "Complete")
    await world.delete(JOBS, "work")
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


@scenario("job")
async def deleted_and_its_pods_orphaned(world: World) -> None:
    """They live on, and nothing holds them."""
    await start(world, job(completions=2, parallelism=2), 2)
    await world.delete(JOBS, "work", cascade="Orphan")
    await world.until_gone(JOBS, "work")
    await world.until(
        "nothing holds the pods", lambda: all(not pod["metadata"].get("finalizers") for pod in world.pods())
    )


@scenario("job")
async def deleted_and_created_again(world: World) -> None:
    """The pods of the first are not the second's: it makes its own."""
    await start(world, job(completions=2, parallelism=2), 2)
    await world.delete(JOBS, "work", cascade="Orphan")
    await world.until_gone(JOBS, "work")
    await world.create(JOBS, job(completions=2, parallelism=2))
    await world.until_status(JOBS, "work", active=2, ready=2)
    await world.until_pods(4)


@scenario("job")
async def deleted_by_time_to_live(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, job(completions=2, ttlSecondsAfterFinished=1))
    await world.until("it is made", world.pods)
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


@scenario("job")
async def time_to_live_of_a_failed_job(world: World) -> None:
    world.node.let(exits(1))
    await world.create(JOBS, job(backoffLimit=0, ttlSecondsAfterFinished=0))
    await world.until("it is made", world.pods)
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


@scenario("job")
async def time_to_live_set_when_it_has_finished(world: World) -> None:
    world.node.let(DONE)
    await world.create(JOBS, job(ttlSecondsAfterFinished=3600))
    await until_condition(world, "Complete")
    await world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 0}})
    await world.until("all is gone", lambda: not world.pods() and not world.all(JOBS))


# Refusals


@scenario("job")
async def quota_refuses_some(world: World) -> None:
    await world.refuse_pods(2)
    await world.create(JOBS, job(completions=5, parallelism=5))
    await world.until_event("FailedCreate")
    await world.until_status(JOBS, "work", active=2, ready=2)
    await world.allow_pods()
    await world.until_status(JOBS, "work", active=5, ready=5)


@scenario("job")
async def quota_refuses_all(world: World) -> None:
    await world.refuse_pods()
    await world.create(JOBS, job(completions=2, parallelism=2))
    await world.until_event("FailedCreate")


@scenario("job")
async def admission_refuses(world: World) -> None:
    made = job(completions=2, parallelism=2)
    made["spec"]["template"]["spec"]["priorityClassName"] = "nobody-made-this"
    await world.create(JOBS, made)
    await world.until_event("FailedCreate", times=2)


@scenario(
    "job",
    ignoring={"Job.status.active": "kube-controller-manager counts pods that the namespace has refused"},
)
async def namespace_terminating(world: World) -> None:
    """No event: nothing will come of it however often it is tried."""
    await start(world, job(completions=3, parallelism=1), 1)
    # Events cannot be written there any more, either.
    await world.until_event("SuccessfulCreate")
    await world.terminate_namespace()
    await world.patch(JOBS, "work", {"spec": {"parallelism": 3}})
    await world.until_status(JOBS, "work", ready=1)


@scenario("job")
async def conflict_storm(world: World) -> None:
    await world.create(JOBS, job(completions=3, parallelism=3))
    async with world.storm(JOBS, "work"):
        await world.until_pods(3)
        world.node.let(DONE)
        await world.settle(seconds=0)
        await world.until("pods are done", lambda: not world.living())
    await until_condition(world, "Complete")
