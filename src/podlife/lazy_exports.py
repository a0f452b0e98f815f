"""Names of a package that are imported from their modules on first use (PEP 562).

if TYPE_CHECKING:
    from podlife.client.refs import PODS, Ref

__all__ = ["PODS", "Ref"]
__getattr__, __dir__ = lazy_exports(__name__, {"podlife.client.refs": ("PODS", "Ref")})
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence


def lazy_exports(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for the package that exports these names of these modules."""
    origins = {name: module for module, names in modules.items() for name in names}

    def get_attribute(name: str) -> object:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(origins[name]), name)
        return vars(sys.modules[package]).setdefault(name, value)

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origins})

    return get_attribute, list_names
