"""A kopf operator: says in the status of every Greeting what it greets. Runs in a pod, with nothing but kopf."""

from typing import Any

import kopf


@kopf.on.create("greetings")
@kopf.on.update("greetings", field="spec.name")
def greet(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.status["says"] = f"Hello, {spec['name']}!"


@kopf.on.delete("greetings")
def part(name: str, logger: kopf.Logger, **_: Any) -> None:
    logger.info("Goodbye, %s!", name)
