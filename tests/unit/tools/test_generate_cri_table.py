"""The numbers and types of the table of CRI messages follow CRI's definition; the names in it stay."""

from __future__ import annotations

import pytest
from tools.generate_cri_table import TableError, generate

PROTO = """
/* A licence; with message Hidden { string a = 1; } in it. */
syntax = "proto3";
service RuntimeService {
    rpc Version(VersionRequest) returns (VersionResponse) {}
}
message VersionRequest {}
// Mount of a volume.
message Mount {
    // Path on the host; string wrong = 9;
    string host_path = 2;
    bool readonly = 3 [deprecated = true];
    MountPropagation propagation = 5;
}
enum MountPropagation {
    PROPAGATION_PRIVATE = 0;
}
message ContainerConfig {
    repeated string command = 3;
    repeated Mount mounts = 7;
    map<string, string> labels = 9;
    map<string,string> annotations = 10;
    bytes value = 11;
    repeated MountPropagation propagations = 12;
}
"""


def table(*lines: str) -> str:
    return "\n".join(['"""A docstring."""', "", 'CRI = """', *lines, '"""', ""])


def test_names_get_the_numbers_and_types_of_the_definition() -> None:
    written = generate(
        table(
            "VersionRequest",
            "Mount propagation host_path readonly",
            "ContainerConfig command=1 mounts=2:bytes labels annotations value propagations",
        ),
        PROTO,
    )
    assert written == table(
        "VersionRequest",
        "Mount propagation=5:int32 host_path=2 readonly=3:bool",
        "ContainerConfig command=3* mounts=7:Mount* labels=9% annotations=10% value=11:bytes propagations=12:int32*",
    )
    assert generate(written, PROTO) == written


def test_a_long_message_is_wrapped_and_read_again() -> None:
    fields = [f"a_field_with_a_long_name_{number}" for number in range(1, 9)]
    proto = f"message Long {{{''.join(f'string {field} = {field[-1]};' for field in fields)}}}"
    written = generate(table(" ".join(["Long", *fields])), proto)
    assert max(map(len, written.splitlines())) <= 120
    assert generate(written, proto) == written
    names: dict[str, str] = {}
    exec(written, names)
    assert names["CRI"].split() == ["Long", *(f"{field}={field[-1]}" for field in fields)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Nothing", "CRI has no message Nothing: remove it from the table"),
        ("Hidden a", "CRI has no message Hidden: remove it from the table"),
        ("Mount wrong", "CRI has no field Mount.wrong: remove it from the table"),
        ("ContainerConfig mounts", "ContainerConfig.mounts is of type Mount: add this message to the table"),
    ],
)
def test_a_name_that_the_definition_does_not_have_is_refused(line: str, reason: str) -> None:
    with pytest.raises(TableError) as raised:
        generate(table(line), PROTO)
    assert str(raised.value) == reason


def test_a_definition_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(TableError, match="cannot parse 'reserved 4' of message Mount"):
        generate(table("Mount"), "message Mount { reserved 4; }")
