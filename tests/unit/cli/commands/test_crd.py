"""`podlife crd`: definitions of classes, and mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from podlife.api.crd import definition_of
from tests.kit.gadget import Gadget
from tests.unit.cli.conftest import Refused, Run

GADGET = "tests.kit.gadget:Gadget"


def test_definition_of_a_class_is_printed(run: Run) -> None:
    said = run("crd", GADGET)
    assert (said.code, said.err) == (0, "")
    assert yaml.safe_load(said.out) == definition_of(Gadget)


def test_module_in_the_current_directory_is_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"from tests.kit.gadget import Gadget\n\nclass Outer:\n    Inner = Gadget\n# {tmp_path}\n"
    Path("my_gadgets.py").write_text(text)
    Path("broken_gadgets.py").write_text("1 / 0")
    both = run("crd", "my_gadgets:Outer.Inner", GADGET)
    # Twice the same version of one resource.
    assert len(list(yaml.safe_load_all(both.out))) == 1
    said = run("crd", "broken_gadgets:X")
    assert (said.code, said.err) == (
        1,
        "podlife: cannot import 'broken_gadgets:X': ZeroDivisionError: division by zero\n",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tests.kit.gadget", "'tests.kit.gadget' is not a class: expected MODULE:CLASS"),
        ("tests/kit/gadget.py:Gadget", "'tests/kit/gadget.py:Gadget' is not a class: expected MODULE:CLASS"),
        ("tests.kit.gadget:Nothing", "module 'tests.kit.gadget' has no attribute 'Nothing'"),
        ("no_such_module:X", "ModuleNotFoundError: No module named 'no_such_module'"),
        (":X", "':X' is not a class: expected MODULE:CLASS"),
    ],
)
def test_class_that_is_not_there_is_reported_in_one_line(run: Run, text: str, expected: str) -> None:
    said = run("crd", text)
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert expected in said.err


def test_anything_but_a_class_is_refused(refused: Refused) -> None:
    assert "'json:dumps' is not a class: expected MODULE:CLASS" in refused("crd", "json:dumps")


def test_class_that_is_no_resource_is_refused_in_one_line(run: Run) -> None:
    said = run("crd", "tests.kit.gadget:Port")
    assert (said.code, said.out) == (1, "")
    assert said.err == "podlife: Port is not a custom resource: decorate it with @CustomResource(…)\n"
