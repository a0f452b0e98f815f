"""Derives the behaviour of each simulated container from the scenario and the pod's annotations."""

from __future__ import annotations

from podlife.errors import ConfigError
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, Pulling, Script

from .scenario import Conduct, PodRule, Scenario
from .scenario_file import ANNOTATIONS, annotated

_DEFAULT_CONDUCT = Conduct()
_DEFAULT_BEHAVIOUR = Behaviour()


def script_of(scenario: Scenario) -> Script:
    """The pod's annotations take precedence over the scenario."""

    def script(sandbox: SandboxConfig, container: ContainerConfig) -> Behaviour:
        conduct = _conduct(scenario, sandbox, container.name)
        if any(key.startswith(ANNOTATIONS) for key in sandbox.annotations):
            try:
                conduct = annotated(conduct, sandbox.annotations, container.name)
            except ConfigError as error:
                return Behaviour(refusal=str(error))
        return (
            _DEFAULT_BEHAVIOUR
            if conduct is _DEFAULT_CONDUCT
            else _behaviour(scenario, conduct, sandbox, container)
        )

    return script


def pulling_of(scenario: Scenario, node: str) -> Pulling:
    """Returns how long an image takes to pull on this node, and the error, if any."""

    def pulling(image: str) -> tuple[float, str]:
        # A rule may name the image as the pod does, without the default tag.
        rule = scenario.image(image) or scenario.image(image.removesuffix(":latest"))
        if rule is None:
            return 0.0, ""
        return rule.pull.drawn(scenario.chance("image", node, image)), rule.error

    return pulling


def _conduct(scenario: Scenario, sandbox: SandboxConfig, container: str) -> Conduct:
    for number, rule in enumerate(scenario.pods):
        if _matches(rule, sandbox, container) and (
            rule.share >= 1.0
            or scenario.chance("pod", number, sandbox.namespace, sandbox.name).random() < rule.share
        ):
            return rule.conduct
    return _DEFAULT_CONDUCT


def _matches(rule: PodRule, sandbox: SandboxConfig, container: str) -> bool:
    return (
        (not rule.namespaces or sandbox.namespace in rule.namespaces)
        and (not rule.containers or container in rule.containers)
        and rule.labels.matches(sandbox.labels)
    )


def _behaviour(
    scenario: Scenario, conduct: Conduct, sandbox: SandboxConfig, container: ContainerConfig
) -> Behaviour:
    chance = scenario.chance("run", sandbox.namespace, sandbox.name, container.name, container.attempt)
    start_seconds = conduct.start.drawn(chance) if conduct.start is not None else 0.0
    run_seconds, exit_code, is_out_of_memory = None, 0, False
    crash = conduct.crash
    if crash is not None and (crash.times is None or container.attempt < crash.times):
        run_seconds, exit_code = crash.after.drawn(chance), crash.code
        is_out_of_memory = crash.is_out_of_memory
    elif conduct.finish is not None:
        run_seconds = conduct.finish.drawn(chance)
    stop = conduct.stop
    return Behaviour(
        start_seconds=start_seconds,
        run_seconds=run_seconds,
        exit_code=exit_code,
        stop_seconds=0.0 if stop is None else None if stop.after is None else stop.after.drawn(chance),
        stop_exit_code=143 if stop is None else stop.code,
        refusal=conduct.create_error,
        start_error=conduct.start_error,
        out_of_memory=is_out_of_memory,
        output=conduct.output,
        termination_message=conduct.message,
    )
