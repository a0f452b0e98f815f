"""What a runtime is told about a container."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.envvars import ContainerConfigError, DownwardContext
from podlife.kubelet.hollow.fake_parts import NoObjects
from podlife.kubelet.interfaces import NoVolumes
from podlife.kubelet.kuberuntime.compute_pod_actions import spec_hash
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs, ContainerInstance
from podlife.kubelet.kuberuntime.log_directory import LogDirectory
from podlife.kubelet.runtime import ContainerConfig, Resources, User
from tests.conformance.kubelet.kit import container, pod

Object = dict[str, Any]


def maker(default_uid: int | None = None) -> ContainerConfigs:
    return ContainerConfigs(NoVolumes(), NoObjects(), LogDirectory(Path("/logs")), default_uid=default_uid)


async def made(of_container: Object, default_uid: int | None = None, **spec: Any) -> ContainerConfig:
    instance = ContainerInstance(2, "ref", DownwardContext(("192.0.2.1",), ("10.0.0.7",), {"cpu": "4"}))
    return await maker(default_uid).container(pod(of_container, **spec), of_container, instance)


def test_a_sandbox_has_its_pod_s_names_and_folder() -> None:
    one = pod(hostNetwork=True, metadata={"labels": {"app": "web"}, "annotations": {"a": "b"}})
    config = maker().sandbox(one, 3)
    assert (config.pod_uid, config.namespace, config.name, config.attempt) == ("u", "ns", "p", 3)
    assert config.log_directory == "/logs/ns_p_u"
    assert config.host_network
    assert config.labels["app"] == "web"
    assert config.labels["io.kubernetes.pod.uid"] == "u"
    assert config.hostname == "p"


@pytest.mark.parametrize("kind", ["secret", "configMap"])
async def test_a_simulated_container_gets_every_key_of_every_object(kind: str) -> None:
    key = {f"{kind}KeyRef": {"name": "any", "key": "password"}}
    one = container("web", env=[{"name": "A", "valueFrom": key}], envFrom=[{f"{kind}Ref": {"name": "all"}}])
    assert dict((await made(one)).env)["A"] == ""


async def test_a_container_has_its_words_expanded_and_its_records() -> None:
    one = container(
        "web",
        command=["run", "$(NAME)"],
        args=["--ip=$(IP)"],
        env=[
            {"name": "NAME", "value": "shop"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        lifecycle={"stopSignal": "SIGUSR1"},
    )
    config = await made(one)
    assert (config.command, config.args) == (("run", "shop"), ("--ip=10.0.0.7",))
    assert config.log_path == "web/2.log"
    assert config.stop_signal == "SIGUSR1"
    assert config.annotations["io.kubernetes.container.hash"] == spec_hash(one)
    assert config.annotations["io.kubernetes.container.restartCount"] == "2"


async def test_resources_are_rounded_up() -> None:
    told = {"limits": {"cpu": "250m", "memory": "64Mi"}, "requests": {"cpu": "1u"}}
    config = await made(container(resources=told))
    assert config.resources == Resources(1, 250, 64 * 2**20)
    assert (await made(container())).resources == Resources()


@pytest.mark.parametrize(
    ("of_pod", "own", "default_uid", "expected"),
    [
        pytest.param({}, {}, None, None, id="nobody said"),
        pytest.param({"runAsUser": 5}, {}, None, User(5), id="the pod"),
        pytest.param({"runAsUser": 5}, {"runAsUser": 6}, None, User(6), id="the container before the pod"),
        pytest.param({"runAsUser": 5, "runAsGroup": 7}, {}, None, User(5, 7), id="a group"),
        pytest.param(
            {"runAsUser": 5, "supplementalGroups": [8, 9], "fsGroup": 9},
            {},
            None,
            User(5, None, (8, 9)),
            id="more groups, each once",
        ),
        pytest.param({"fsGroup": 9}, {}, 0, User(0, None, (9,)), id="groups of whom it runs as anyway"),
        pytest.param({"fsGroup": 9}, {}, None, None, id="groups of whom the image says"),
    ],
)
async def test_whom_it_runs_as(
    of_pod: Object, own: Object, default_uid: int | None, expected: User | None
) -> None:
    config = await made(container(securityContext=own), default_uid, securityContext=of_pod)
    assert config.user == expected


@pytest.mark.parametrize(
    ("own", "default_uid", "words"),
    [
        ({"runAsNonRoot": True, "runAsUser": 0}, None, "container's runAsUser breaks non-root policy"),
        ({"runAsNonRoot": True}, 0, "container has runAsNonRoot and image will run as root"),
    ],
)
async def test_one_that_may_not_run_as_root_and_would_is_refused(
    own: Object, default_uid: int | None, words: str
) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        await made(container(securityContext=own), default_uid)
    assert (await made(container(securityContext={**own, "runAsUser": 4}))).user == User(4)


async def test_more_rights_than_it_began_with_can_be_forbidden() -> None:
    assert (await made(container())).allow_privilege_escalation
    own = {"allowPrivilegeEscalation": False}
    assert not (await made(container(securityContext=own))).allow_privilege_escalation
