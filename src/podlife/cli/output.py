"""The structured formats of `-o`, which every command writes alike."""

from __future__ import annotations

import json
from typing import Any

STRUCTURED = ("json", "yaml")


def structured(facts: Any, output: str) -> str:
    """As one of `STRUCTURED`, in whole lines."""
    if output == "json":
        return json.dumps(facts, indent=2) + "\n"
    import yaml

    # Plain types first: JSON accepts subclasses of str and list that YAML refuses.
    plain = json.loads(json.dumps(facts))
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
