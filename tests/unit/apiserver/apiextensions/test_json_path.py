from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.apiextensions.json_path import compile_path

OBJECT = {
    "metadata": {"name": "x", "annotations": {"a.b/c": "1"}},
    "spec": {"ports": [{"n": 1, "p": "TCP"}, {"n": 2, "p": "UDP"}], "deep": {"n": 9}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", ["x"]),
        (".metadata.annotations.a\\.b/c", ["1"]),
        (".metadata.annotations['a.b/c']", ["1"]),
        (".spec.ports[0].n", [1]),
        (".spec.ports[-1].n", [2]),
        (".spec.ports[5].n", []),
        (".spec.ports[0:1].n", [1]),
        (".spec.ports[*].p", ["TCP", "UDP"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Other')].status", ["False"]),
        (".spec.ports[?(@.n>1)].p", ["UDP"]),
        (".spec.ports[?(@.n>'x')].p", []),
        (".spec..n", [1, 2, 9]),
        (".what.ever", []),
        (".", [OBJECT]),
    ],
)
def test_path_finds_what_kubectl_would_show(path: str, expected: list[Any]) -> None:
    found = compile_path(path)(OBJECT)
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]", ".a{b}", ".a" * 100, ".a[?(@.b==c)]"])
def test_path_that_is_not_understood_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"path|filter"):
        compile_path(path)
