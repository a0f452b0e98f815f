"""Facts for programs: the formats of `-o` that every command writes alike."""

from __future__ import annotations

import json
from typing import Any

STRUCTURED = ("json", "yaml")


def structured(facts: Any, output: str) -> str:
    """As one of `STRUCTURED`, in whole lines."""
    if output == "json":
        return json.dumps(facts, indent=2) + "\n"
    import yaml

    # Plain first: what JSON takes for a text or a list may be of a type that YAML would refuse.
    plain = json.loads(json.dumps(facts))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
