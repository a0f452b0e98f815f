"""CRI v1, and what there is in containerd's own API beyond it, as far as it is used: messages with their numbers.

The classes are made from this table when they are first asked for, so that nothing is generated and no version of
protobuf is tied to what made it. A field that is not here is left away by whoever reads a message, as protobuf has it;
enumerations are plain numbers. The names are CRI's own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

# One message per line: a field is name=number, of text where nothing else is said; * is a list, % a map of texts.
_CRI = """
VersionRequest version=1
VersionResponse version=1 runtime_name=2 runtime_version=3 runtime_api_version=4
Mount container_path=1 host_path=2 readonly=3:bool propagation=5:int32
NamespaceOption network=1:int32 pid=2:int32 ipc=3:int32
Int64Value value=1:int64
LinuxSandboxSecurityContext namespace_options=1:NamespaceOption
LinuxPodSandboxConfig cgroup_parent=1 security_context=2:LinuxSandboxSecurityContext sysctls=3%
PodSandboxMetadata name=1 uid=2 namespace=3 attempt=4:uint32
PodSandboxConfig metadata=1:PodSandboxMetadata hostname=2 log_directory=3 labels=6% annotations=7% \
linux=8:LinuxPodSandboxConfig
RunPodSandboxRequest config=1:PodSandboxConfig runtime_handler=2
RunPodSandboxResponse pod_sandbox_id=1
StopPodSandboxRequest pod_sandbox_id=1
StopPodSandboxResponse
RemovePodSandboxRequest pod_sandbox_id=1
RemovePodSandboxResponse
PodSandboxStatusRequest pod_sandbox_id=1
PodIP ip=1
PodSandboxNetworkStatus ip=1 additional_ips=2:PodIP*
PodSandboxStatus id=1 state=3:int32 created_at=4:int64 network=5:PodSandboxNetworkStatus labels=7% annotations=8%
PodSandboxStatusResponse status=1:PodSandboxStatus
PodSandboxFilter id=1 label_selector=3%
ListPodSandboxRequest filter=1:PodSandboxFilter
PodSandbox id=1 state=3:int32 created_at=4:int64 labels=5% annotations=6%
ListPodSandboxResponse items=1:PodSandbox*
ImageSpec image=1 user_specified_image=18
KeyValue key=1 value=2
LinuxContainerResources cpu_period=1:int64 cpu_quota=2:int64 cpu_shares=3:int64 memory_limit_in_bytes=4:int64 unified=9%
LinuxContainerSecurityContext namespace_options=3:NamespaceOption run_as_user=5:Int64Value run_as_group=12:Int64Value \
supplemental_groups=8:int64* no_new_privs=11:bool masked_paths=13* readonly_paths=14*
LinuxContainerConfig resources=1:LinuxContainerResources security_context=2:LinuxContainerSecurityContext
ContainerMetadata name=1 attempt=2:uint32
ContainerConfig metadata=1:ContainerMetadata image=2:ImageSpec command=3* args=4* working_dir=5 envs=6:KeyValue* \
mounts=7:Mount* labels=9% annotations=10% log_path=11 tty=14:bool linux=15:LinuxContainerConfig stop_signal=18:int32
CreateContainerRequest pod_sandbox_id=1 config=2:ContainerConfig sandbox_config=3:PodSandboxConfig
CreateContainerResponse container_id=1
StartContainerRequest container_id=1
StartContainerResponse
StopContainerRequest container_id=1 timeout=2:int64
StopContainerResponse
RemoveContainerRequest container_id=1
RemoveContainerResponse
ContainerFilter id=1 pod_sandbox_id=3 label_selector=4%
ListContainersRequest filter=1:ContainerFilter
Container id=1 pod_sandbox_id=2 image_ref=5 state=6:int32 created_at=7:int64 labels=8% annotations=9%
ListContainersResponse containers=1:Container*
ContainerStatusRequest container_id=1
ContainerStatus id=1 state=3:int32 created_at=4:int64 started_at=5:int64 finished_at=6:int64 exit_code=7:int32 \
image_ref=9 reason=10 message=11 labels=12% annotations=13%
ContainerStatusResponse status=1:ContainerStatus
ExecSyncRequest container_id=1 cmd=2* timeout=3:int64
ExecSyncResponse stdout=1:bytes stderr=2:bytes exit_code=3:int32
ExecRequest container_id=1 cmd=2* tty=3:bool stdin=4:bool stdout=5:bool stderr=6:bool
ExecResponse url=1
Image id=1 repo_tags=2* repo_digests=3*
ImageStatusRequest image=1:ImageSpec
ImageStatusResponse image=1:Image
PullImageRequest image=1:ImageSpec
PullImageResponse image_ref=1
GetEventsRequest
ContainerEventResponse container_id=1 container_event_type=2:int32
"""
_CONTAINERD = """
SubscribeRequest filters=1*
Any type_url=1 value=2:bytes
Envelope namespace=2 topic=3 event=4:Any
TaskExit container_id=1 id=2
ListPidsRequest container_id=1
ProcessInfo pid=1:uint32 info=2:Any
ListPidsResponse processes=1:ProcessInfo*
"""
_KINDS = {"": 9, "string": 9, "bool": 8, "int32": 5, "uint32": 13, "int64": 3, "bytes": 12}
_MESSAGE, _REPEATED, _OPTIONAL = 11, 3, 1


@cache
def message(name: str) -> Any:
    """The class of a message by its name in CRI, or in containerd's own API."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"podlife.cri.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(_CRI + _CONTAINERD))
    return pool


def _file(table: str) -> Any:
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.FileDescriptorProto(
        name="podlife/cri.proto", package="podlife.cri", syntax="proto3"
    )
    for name, *fields in filter(None, map(str.split, table.splitlines())):
        made = described.message_type.add(name=name)
        for text in fields:
            _add_field(made, text)
    return described


def _add_field(made: Any, text: str) -> None:
    """One field as the table has it, like `mounts=7:Mount*`."""
    name, _, rest = text.partition("=")
    number, _, kind = rest.rstrip("*%").partition(":")
    field = made.field.add(name=name, number=int(number), label=_REPEATED if rest[-1] in "*%" else _OPTIONAL)
    if rest.endswith("%"):
        kind = f"{made.name}.{_add_entry(made, name)}"
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = _MESSAGE, f".podlife.cri.{kind}"


def _add_entry(made: Any, name: str) -> str:
    entry = made.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, part in enumerate(("key", "value"), start=1):
        entry.field.add(name=part, number=number, label=_OPTIONAL, type=_KINDS["string"])
    return str(entry.name)
