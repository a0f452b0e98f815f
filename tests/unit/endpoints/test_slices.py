"""Which slices change, and how little of them."""

from __future__ import annotations

from podlife.api.views import OwnerReference
from podlife.endpoints.slices import SliceChanges, new_slice, plan_slices, slice_labels
from podlife.endpoints.views import (
    Annotated,
    Container,
    ContainerPort,
    EndpointPod,
    EndpointSlice,
    Labelled,
    PodIP,
    PodSpec,
    PodStatus,
    Service,
    ServicePort,
    ServiceSpec,
)

OWNER = OwnerReference(api_version="v1", kind="Service", name="web", uid="uid")


def service(*ports: ServicePort) -> Service:
    given = ServiceSpec(
        selector={"a": "b"}, ports=ports or (ServicePort(80, "", "TCP", 8080),), cluster_ip="10.0.0.1"
    )
    return Service(Labelled(name="web", namespace="ns", uid="uid"), given)


def pod(number: int, *ports: ContainerPort) -> EndpointPod:
    status = PodStatus("Running", (PodIP(f"10.1.{number // 250}.{number % 250}"),))
    spec = PodSpec("node", containers=(Container(ports),))
    return EndpointPod(Labelled(name=f"pod-{number:04}", namespace="ns", uid=f"{number}"), spec, status)


def stored(name: str, changes: SliceChanges, index: int = 0) -> EndpointSlice:
    """What a slice that is to be created looks like once it is."""
    content = changes.create[index]
    meta = Annotated(name=name, namespace="ns", owner_references=(OWNER,), labels=slice_labels(service()))
    return EndpointSlice(meta, "IPv4", content.endpoints, content.ports)


def plan(pods: list[EndpointPod], existing: list[EndpointSlice], of: Service | None = None) -> SliceChanges:
    return plan_slices(of or service(), "IPv4", pods, {}, existing)


def test_nothing_changes_if_all_is_as_it_should_be() -> None:
    pods = [pod(number) for number in range(3)]
    first = stored("a", plan(pods, []))
    assert plan(pods, [first]) == SliceChanges()


def test_a_full_slice_is_left_alone_and_the_rest_goes_into_another() -> None:
    pods = [pod(number) for number in range(120)]
    made = plan(pods, [])
    assert [len(each.endpoints) for each in made.create] == [100, 20]
    full, rest = stored("a", made), stored("b", made, 1)
    changes = plan([*pods, pod(120)], [full, rest])
    assert [each.metadata.name for each, _ in changes.update] == ["b"]
    assert [len(content.endpoints) for _, content in changes.update] == [21]
    assert not changes.create
    assert not changes.delete


def test_a_slice_that_changes_anyway_is_filled_first() -> None:
    pods = [pod(number) for number in range(120)]
    made = plan(pods, [])
    changes = plan([*pods[1:], pod(120)], [stored("a", made), stored("b", made, 1)])
    assert [(each.metadata.name, len(content.endpoints)) for each, content in changes.update] == [("a", 100)]


def test_a_slice_is_written_anew_rather_than_deleted() -> None:
    first = stored("a", plan([pod(1)], []))
    changes = plan([pod(2)], [first])
    assert [each.metadata.name for each, _ in changes.update] == ["a"]
    assert (changes.create, changes.delete) == ([], [])
    [(_, content)] = plan([], [first]).update
    assert (content.endpoints, content.ports) == ([], [])


def test_an_empty_slice_stays_as_it_is() -> None:
    empty = stored("a", plan([], []))
    assert plan([], [empty]) == SliceChanges()


def test_slices_of_an_earlier_service_are_deleted() -> None:
    first = stored("a", plan([pod(1)], []))
    first.metadata.owner_references = ()
    changes = plan([pod(1)], [first])
    assert changes.delete == [first]
    assert len(changes.create) == 1


def test_pods_with_other_numbers_for_a_named_port_have_a_slice_of_their_own() -> None:
    named = service(ServicePort(80, "http", "TCP", "web"))
    pods = [
        pod(1, ContainerPort(1, "web")),
        pod(2, ContainerPort(2, "web")),
        pod(3, ContainerPort(3, "web", "UDP")),
    ]
    changes = plan(pods, [], named)
    assert [[port["port"] for port in each.ports] for each in changes.create] == [[1], [2], []]


def test_a_long_name_leaves_no_room_for_a_dash() -> None:
    long = service()
    long.metadata.name = "a" * 63
    [content] = plan([], [], long).create
    assert new_slice(long, "IPv4", content, None)["metadata"]["generateName"] == f"{'a' * 63}-"


def test_a_pod_on_loopback_is_no_endpoint() -> None:
    local = pod(1)
    local.status.pod_ips = (PodIP("127.0.0.1"),)
    [content] = plan([local, pod(2)], []).create
    assert [each["addresses"] for each in content.endpoints] == [["10.1.0.2"]]
