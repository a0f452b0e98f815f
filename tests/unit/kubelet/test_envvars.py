"""References, fields, services, and the environment that containers get."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from podlife.kubelet.envvars import (
    ContainerConfigError,
    DownwardContext,
    EnvironmentSources,
    command_and_args,
    environment,
    expand,
    field_value,
    resource_value,
    service_variables,
)
from tests.conformance.kubelet.kit import Object, container, pod

AROUND = DownwardContext(("192.0.2.1", "2001:db8::1"), ("10.0.0.1", "fd00::1"), {"cpu": "4", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("a$(A)b$(B)c", "a1b$(A)c"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$", "$$"),
        ("$(A", "$(A"),
        ("$A $", "$A $"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("", ""),
    ],
)
def test_references_are_expanded_once(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}, {"A": "other", "B": "$(A)"}) == expected


LABELLED = pod(
    metadata={"labels": {"b": 'say "x"', "a": "1"}, "annotations": {"example.com/k": "v"}},
    nodeName="n",
    serviceAccountName="robot",
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels", 'a="1"\nb="say \\"x\\""'),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['example.com/k']", "v"),
        ("spec.nodeName", "n"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,2001:db8::1"),
        ("status.podIP", "10.0.0.1"),
        ("status.podIPs", "10.0.0.1,fd00::1"),
    ],
)
def test_fields_of_a_pod(path: str, expected: str) -> None:
    assert field_value(LABELLED, path, AROUND) == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("status.phase", "unsupported fieldPath: status.phase"),
        ("spec.x['a']", "fieldPath \"spec.x\\['a'\\]\" does not support subscript"),
    ],
)
def test_a_field_that_there_is_not_is_an_error(path: str, message: str) -> None:
    with pytest.raises(ContainerConfigError, match=message):
        field_value(pod(), path, AROUND)


LIMITED = container(resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "100Mi", "cpu": "250m"}})


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.cpu", "divisor": "0"}, "2"),
        ({"resource": "requests.memory"}, "104857600"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "100"),
        ({"resource": "requests.memory", "divisor": "1Gi"}, "1"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "8"),
        ({"resource": "requests.ephemeral-storage"}, "0"),
        ({"resource": "limits.cpu", "containerName": "b"}, "4"),
    ],
)
def test_resources_in_units_of_the_divisor(ref: Object, expected: str) -> None:
    assert resource_value(pod(LIMITED, container("b")), LIMITED, ref, AROUND) == expected


def test_resources_of_nobody_are_an_error() -> None:
    with pytest.raises(ContainerConfigError, match="container x not found"):
        resource_value(pod(), LIMITED, {"containerName": "x", "resource": "limits.cpu"}, AROUND)
    with pytest.raises(ContainerConfigError, match="unsupported container resource : cpu"):
        resource_value(pod(), LIMITED, {"resource": "cpu"}, AROUND)


SECRET = {"data": {"password": base64.b64encode(b"s3cret").decode()}}
SOURCES = EnvironmentSources(
    {"settings": {"data": {"color": "red", "size": "L"}}}.get,
    {"keys": SECRET}.get,
    {"SVC_HOST": "10.0.0.10", "color": "of a service"},
    AROUND,
)


def made(**fields: Any) -> dict[str, str]:
    one = container(**fields)
    return environment(pod(one), one, SOURCES)


def test_services_are_replaced_by_whole_maps_and_those_by_single_variables() -> None:
    env = made(
        envFrom=[{"configMapRef": {"name": "settings"}}, {"prefix": "KEY_", "secretRef": {"name": "keys"}}],
        env=[{"name": "size", "value": "XL"}],
    )
    assert env == {"SVC_HOST": "10.0.0.10", "color": "red", "size": "XL", "KEY_password": "s3cret"}


def test_a_variable_may_refer_to_those_before_it() -> None:
    env = made(
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)-$(C)-$(SVC_HOST)"},
            {"name": "C", "value": "3"},
            {"name": "A", "value": "$(A)$(A)"},
        ]
    )
    assert (env["A"], env["B"], env["C"]) == ("11", "1-$(C)-10.0.0.10", "3")


def test_variables_come_from_fields_maps_and_secrets() -> None:
    env = made(
        env=[
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
            {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
            {"name": "EMPTY"},
        ]
    )
    assert [env[name] for name in ("NAME", "CPU", "COLOR", "PW", "EMPTY")] == ["p", "4", "red", "s3cret", ""]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("configMap", "none", 'configmap "none" not found'),
        ("secret", "none", 'secret "none" not found'),
        ("configMap", "settings", "couldn't find key x in ConfigMap ns/settings"),
        ("secret", "keys", "couldn't find key x in Secret ns/keys"),
    ],
)
def test_what_is_not_there_keeps_the_container_unless_it_is_optional(
    kind: str, name: str, message: str
) -> None:
    def variable(**more: bool) -> Object:
        return {"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": "x", **more}}}

    with pytest.raises(ContainerConfigError) as refused:
        made(env=[variable()])
    assert str(refused.value) == message
    assert refused.value.reason == "CreateContainerConfigError"
    assert "V" not in made(env=[variable(optional=True)])
    if name == "none":
        with pytest.raises(ContainerConfigError, match=message):
            made(envFrom=[{f"{kind}Ref": {"name": name}}])
        assert made(envFrom=[{f"{kind}Ref": {"name": name, "optional": True}}]) == SOURCES.services


def test_a_secret_that_is_not_base64_is_an_error() -> None:
    one = container(envFrom=[{"secretRef": {"name": "odd"}}])
    with pytest.raises(ContainerConfigError, match="not base64"):
        environment(pod(one), one, EnvironmentSources(secret={"odd": {"data": {"k": "x"}}}.get))


def test_command_and_arguments_are_expanded() -> None:
    one = container(command=["run", "$(A)"], args=["$(B)", "$$(A)"])
    assert command_and_args(one, {"A": "1"}) == (["run", "1"], ["$(B)", "$(A)"])
    assert command_and_args(container(), {}) == ([], [])


def service(name: str, address: str, *ports: Object) -> Object:
    return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}}


def test_a_service_is_told_in_the_forms_and_the_order_of_upstream() -> None:
    found = service_variables(
        [service("red-store", "10.0.0.1", {"name": "http-api", "port": 80}, {"port": 53, "protocol": "UDP"})]
    )
    assert list(found.items()) == [
        ("RED_STORE_SERVICE_HOST", "10.0.0.1"),
        ("RED_STORE_SERVICE_PORT", "80"),
        ("RED_STORE_SERVICE_PORT_HTTP_API", "80"),
        ("RED_STORE_PORT", "tcp://10.0.0.1:80"),
        ("RED_STORE_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("RED_STORE_PORT_80_TCP_PROTO", "tcp"),
        ("RED_STORE_PORT_80_TCP_PORT", "80"),
        ("RED_STORE_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("RED_STORE_PORT_53_UDP", "udp://10.0.0.1:53"),
        ("RED_STORE_PORT_53_UDP_PROTO", "udp"),
        ("RED_STORE_PORT_53_UDP_PORT", "53"),
        ("RED_STORE_PORT_53_UDP_ADDR", "10.0.0.1"),
    ]


def test_an_address_of_version_6_is_in_brackets_where_a_port_follows() -> None:
    found = service_variables([service("six", "fd00::1", {"port": 80})])
    assert found["SIX_PORT"] == "tcp://[fd00::1]:80"
    assert found["SIX_SERVICE_HOST"] == found["SIX_PORT_80_TCP_ADDR"] == "fd00::1"


def test_a_service_without_an_address_of_its_own_is_not_told() -> None:
    services = [service("headless", "None", {"port": 80}), service("none-yet", "", {"port": 80})]
    services.append({"metadata": {"name": "external"}, "spec": {"externalName": "elsewhere.example"}})
    assert service_variables(services) == {}


def test_of_two_services_whose_names_become_the_same_the_later_name_wins_in_any_order() -> None:
    one, two = service("a-b", "10.0.0.1", {"port": 1}), service("a_b", "10.0.0.2", {"port": 1})
    assert service_variables([one, two]) == service_variables([two, one])
