"""STATUS, READY and RESTARTS of pods, in the situations people run `kubectl get pods` for."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import PODS

from .situation import ANY_AGE, NOW, Situation, at, named, shown

NONE = "<none>"


def pod(name: str, status: dict[str, Any], *, deleting: bool = False, **spec: Any) -> dict[str, Any]:
    containers = spec.pop("containers", ["main"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": named(name, deleting=deleting),
        "spec": {"containers": [{"name": each, "image": "image"} for each in containers], **spec},
        "status": status,
    }


def init(*names: str, sidecars: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [
        {"name": name, "image": "image"} | ({"restartPolicy": "Always"} if name in sidecars else {})
        for name in names
    ]


def running(name: str = "main", *, ready: bool = True, **more: Any) -> dict[str, Any]:
    state = {"running": {"startedAt": at(NOW - 60)}}
    return container(name, state, ready=ready, started=True, **more)


def waiting(reason: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return container(name, {"waiting": {"reason": reason}}, **more)


def ended(code: int, name: str = "main", **terminated: Any) -> dict[str, Any]:
    return container(name, {"terminated": {"exitCode": code, **terminated}})


def container(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    } | more


def restarted(times: int, ended_at: float | None) -> dict[str, Any]:
    terminated = {"exitCode": 1} | ({"finishedAt": at(ended_at)} if ended_at else {})
    return {"restartCount": times, "lastState": {"terminated": terminated}}


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def row(name: str, ready: str, status: str, restarts: str = "0", *wide: str) -> list[str]:
    return [name, ready, status, restarts, ANY_AGE, *(wide or (NONE, NONE, NONE, NONE))]


def situation(obj: dict[str, Any], *cells: str) -> Situation:
    name = obj["metadata"]["name"]
    return Situation(name, obj, row(name, *cells))


def plain() -> list[Situation]:
    gated = [condition("PodScheduled", "False", reason="SchedulingGated")]
    return [
        situation(pod("new", {"phase": "Pending"}), "0/1", "Pending"),
        situation(pod("gated", {"phase": "Pending", "conditions": gated}), "0/1", "SchedulingGated"),
        situation(pod("up", {"phase": "Running", "containerStatuses": [running()]}), "1/1", "Running"),
        situation(
            pod("evicted", {"phase": "Failed", "reason": "Evicted", "message": "full"}), "0/1", "Evicted"
        ),
        situation(pod("lost", {"phase": "Running", "reason": "NodeLost"}, deleting=True), "0/1", "Unknown"),
        situation(
            pod("going", {"phase": "Running", "containerStatuses": [running()]}, deleting=True),
            "1/1",
            "Terminating",
        ),
        situation(
            pod(
                "done-going",
                {"phase": "Succeeded", "containerStatuses": [ended(0, reason="Completed")]},
                deleting=True,
            ),
            "0/1",
            "Completed",
        ),
        situation(
            pod(
                "placed",
                {
                    "phase": "Pending",
                    "podIPs": [{"ip": "10.1.2.3"}],
                    "podIP": "10.1.2.3",
                    "conditions": [condition("example.com/a", "True"), condition("example.com/b", "False")],
                },
                nodeName="node-1",
                readinessGates=[{"conditionType": f"example.com/{each}"} for each in "abc"],
            ),
            "0/1",
            "Pending",
            "0",
            "10.1.2.3",
            "node-1",
            NONE,
            "1/3",
        ),
        situation(
            pod("nominated", {"phase": "Pending", "nominatedNodeName": "node-2"}),
            "0/1",
            "Pending",
            "0",
            NONE,
            NONE,
            "node-2",
            NONE,
        ),
    ]


def containers() -> list[Situation]:
    def of(name: str, *statuses: dict[str, Any], phase: str = "Running", **status: Any) -> dict[str, Any]:
        names = [each["name"] for each in statuses]
        return pod(name, {"phase": phase, "containerStatuses": [*statuses], **status}, containers=names)

    ready = [condition("Ready", "True")]
    done = ended(0, reason="Completed")
    return [
        situation(of("creating", waiting("ContainerCreating"), phase="Pending"), "0/1", "ContainerCreating"),
        situation(of("pulling", waiting("ImagePullBackOff"), phase="Pending"), "0/1", "ImagePullBackOff"),
        situation(
            of("crashing", waiting("CrashLoopBackOff", **restarted(4, NOW - 185))),
            "0/1",
            "CrashLoopBackOff",
            "4 (3m5s ago)",
        ),
        situation(of("restarted", running(**restarted(1, NOW - 7200))), "1/1", "Running", "1 (120m ago)"),
        situation(of("restarted-when", running(**restarted(2, None))), "1/1", "Running", "2"),
        situation(of("completed", done, phase="Succeeded"), "0/1", "Completed"),
        situation(of("error", ended(1, reason="Error"), phase="Failed"), "0/1", "Error"),
        situation(of("code", ended(3), phase="Failed"), "0/1", "ExitCode:3"),
        situation(of("signal", ended(137, signal=9), phase="Failed"), "0/1", "Signal:9"),
        situation(of("oom", ended(137, reason="OOMKilled"), phase="Failed"), "0/1", "OOMKilled"),
        situation(of("unready", running(ready=False)), "0/1", "Running"),
        situation(of("half-ready", done, running("b"), conditions=ready), "1/2", "Running"),
        situation(of("half-unready", done, running("b")), "1/2", "NotReady"),
        situation(of("half-failed", done, ended(2, "b", reason="Error"), phase="Failed"), "0/2", "Error"),
        situation(
            of("two-restarts", running(**restarted(1, NOW - 90)), running("b", **restarted(2, NOW - 30))),
            "2/2",
            "Running",
            "3 (30s ago)",
        ),
        situation(
            of("first-speaks", waiting("ErrImagePull"), waiting("CrashLoopBackOff", "b")),
            "0/2",
            "ErrImagePull",
        ),
    ]


def initialization() -> list[Situation]:
    def of(
        name: str,
        *statuses: dict[str, Any],
        phase: str = "Pending",
        names: str = "ab",
        sidecars: str = "",
        **status: Any,
    ) -> dict[str, Any]:
        return pod(
            name,
            {"phase": phase, "initContainerStatuses": [*statuses], **status},
            initContainers=init(*names, sidecars=tuple(sidecars)),
        )

    preparing = waiting("PodInitializing")
    done = ended(0, "a", reason="Completed")
    initialized = [condition("Initialized", "True")]
    return [
        situation(
            of("init-first", waiting("PodInitializing", "a"), waiting("PodInitializing", "b")),
            "0/1",
            "Init:0/2",
        ),
        situation(of("init-second", done, running("b", ready=False)), "0/1", "Init:1/2"),
        situation(of("init-error", ended(1, "a", reason="Error")), "0/1", "Init:Error"),
        situation(of("init-code", ended(5, "a")), "0/1", "Init:ExitCode:5"),
        situation(of("init-signal", ended(137, "a", signal=9)), "0/1", "Init:Signal:9"),
        situation(
            of("init-crashing", waiting("CrashLoopBackOff", "a", **restarted(6, NOW - 45))),
            "0/1",
            "Init:CrashLoopBackOff",
            "6 (45s ago)",
        ),
        situation(
            of("init-done", done, ended(0, "b", reason="Completed"), containerStatuses=[preparing]),
            "0/1",
            "PodInitializing",
        ),
        situation(
            of(
                "init-restarts-forgotten",
                container("a", {"terminated": {"exitCode": 0}}, **restarted(3, NOW - 45)),
                names="a",
                phase="Running",
                containerStatuses=[running()],
            ),
            "1/1",
            "Running",
        ),
        situation(
            of(
                "sidecar",
                running("a", **restarted(2, NOW - 45)),
                names="a",
                sidecars="a",
                phase="Running",
                containerStatuses=[running()],
            ),
            "2/2",
            "Running",
            "2 (45s ago)",
        ),
        situation(
            of(
                "sidecar-starting",
                container("a", {"running": {"startedAt": at(NOW)}}, started=False),
                names="a",
                sidecars="a",
            ),
            "0/2",
            "Init:0/1",
        ),
        situation(
            of(
                "sidecar-failed-late",
                ended(1, "a", reason="Error"),
                names="a",
                sidecars="a",
                phase="Running",
                conditions=initialized,
                containerStatuses=[running()],
            ),
            "1/2",
            "Init:Error",
        ),
    ]


def test_bookmark_which_has_no_name_and_no_spec_is_still_a_row() -> None:
    bookmark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    assert PODS.cells(bookmark, NOW) == ["", "0/0", "", "0", "<unknown>", NONE, NONE, NONE, NONE]


@pytest.mark.parametrize(
    ("phase", "message"),
    [("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed.")],
)
def test_finished_pod_says_so_in_the_conditions_of_its_row(phase: str, message: str) -> None:
    assert PODS.conditions is not None
    assert PODS.conditions(pod("a", {"phase": phase})) == [
        {"type": "Completed", "status": "True", "reason": phase, "message": message}
    ]


def budgets() -> list[Situation]:
    def of(name: str, spec: dict[str, Any], *cells: Any, allowed: int = 0) -> Situation:
        obj = {
            "kind": "PodDisruptionBudget",
            "metadata": named(name),
            "spec": {"selector": {}, **spec},
            "status": {"disruptionsAllowed": allowed},
        }
        return Situation(name, obj, [name, *cells, allowed, ANY_AGE])

    return [
        of("at-least", {"minAvailable": 2}, "2", "N/A", allowed=1),
        of("at-most", {"maxUnavailable": "30%"}, "N/A", "30%"),
    ]


SITUATIONS = [*plain(), *containers(), *initialization(), *budgets()]


@pytest.mark.parametrize("case", SITUATIONS, ids=str)
def test_pod_or_budget_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert shown(case.obj) == case.cells
