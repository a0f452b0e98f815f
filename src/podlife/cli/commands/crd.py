"""`podlife crd`: prints the CustomResourceDefinitions of Python classes."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from typing import Annotated

import typer


def crd(
    classes: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE:CLASS...",
            help="Classes decorated with podlife.api.crd.CustomResource; modules are also searched in the current "
            "directory. Of several versions of a resource the first is stored.",
        ),
    ],
) -> None:
    """Print the CustomResourceDefinitions of Python classes as YAML."""
    from podlife.api.crd import definitions_of
    from podlife.cli.output import as_yaml

    print("---\n".join(map(as_yaml, definitions_of([_load(text) for text in classes]))), end="")


def _load(text: str) -> type:
    from podlife.errors import ConfigError

    module, _, name = text.partition(":")
    if not module or not name or "/" in module:
        raise ConfigError(f"{text!r} is not a class: expected MODULE:CLASS")
    # As `python -m` does.
    sys.path.insert(0, "")
    try:
        found = attrgetter(name)(import_module(module))
    except Exception as error:
        raise ConfigError(f"cannot import {text!r}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove("")
    if not isinstance(found, type):
        raise typer.BadParameter(f"{text!r} is not a class: expected MODULE:CLASS")
    return found
