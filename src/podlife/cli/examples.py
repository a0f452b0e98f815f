"""Examples at the end of each command's help, by command path."""

from __future__ import annotations

import typer

EXAMPLES: dict[str, tuple[str, ...]] = {
    "up": ("podlife up --nodes 5", "podlife up --runtime sim --nodes 1000 --detach", "podlife up node-2"),
    "down": ("podlife down", "podlife down --data ~/other --now", "podlife down node-2"),
    "status": ("podlife status", "podlife status -o yaml"),
    "ui": ("podlife ui", "podlife ui --record incident.gz", "podlife ui --replay incident.gz"),
    "stuck": ("podlife stuck -A", "podlife stuck -n web -o json"),
    "node": (
        "podlife node --name more --join ~/.local/share/podlife/join.kubeconfig",
        "podlife node --runtime containerd --kubeconfig node.kubeconfig",
    ),
    "crd": ("podlife crd pools:Pool > config/crd/pools.yaml", "podlife crd pools:Pool | kubectl apply -f -"),
    "envtest": ("podlife envtest", "podlife envtest bin/k8s -p env"),
    "version": ("podlife version",),
    "explain pod": ("podlife explain pod web-0", "podlife explain web-0 -n shop"),
    "explain node": ("podlife explain node node-1",),
    "demo node-failure": ("podlife demo node-failure",),
    "demo graceful-delete": ("podlife demo graceful-delete",),
    "demo orphans": ("podlife demo orphans",),
    "gc plan": (
        "podlife gc plan --terminated-pod-gc-threshold 500",
        "podlife gc plan --policy policy.yaml -o wide",
    ),
    "gc sweep": ("podlife gc sweep --terminated-pod-gc-threshold 500", "podlife gc sweep -n ci --yes"),
    "gc run": ("podlife gc run --listen 127.0.0.1:8080", "podlife gc run --policy policy.yaml"),
    "gc finalizers": ("podlife gc finalizers", "podlife gc finalizers -n web -o json"),
    "gc finalizers remove": ("podlife gc finalizers remove web-0 --allow example.com/protect -n shop",),
    "gc policy check": ("podlife gc policy check policy.yaml",),
    "gc policy show": ("podlife gc policy show policy.yaml",),
    "gc policy test": ("podlife gc policy test policy.yaml pods.yaml",),
    "gc policy schema": ("podlife gc policy schema > policy.schema.json",),
    "archive list": (
        "podlife archive list --archive ~/pods",
        "podlife archive list --archive s3://bucket/pods -n ci",
    ),
    "archive show": ("podlife archive show web-0 --archive ~/pods",),
    "archive prune": ("podlife archive prune --archive ~/pods --max-age 720h",),
    "sim": ("podlife sim --nodes 1000 --pods 10000",),
    "sim check": ("podlife sim check scenario.yaml",),
    "apiserver": ("podlife apiserver", "podlife apiserver --memory --port 0"),
    "apiserver kubeconfig": (
        "podlife apiserver kubeconfig --node n1 -o n1.kubeconfig",
        "podlife apiserver kubeconfig --user eve --group readers",
    ),
    "apiserver backup": ("podlife apiserver backup objects.db",),
    "apiserver restore": ("podlife apiserver restore objects.db --data ~/restored",),
    "apiserver check": ("podlife apiserver check",),
    "apiserver salvage": ("podlife apiserver salvage saved.db",),
    "controllers run": (
        "podlife controllers run",
        "podlife controllers run --controllers=deployment,replicaset,garbage-collector",
    ),
    "controllers list": ("podlife controllers list --names",),
}


def add_examples(app: typer.Typer, path: str = "") -> None:
    """Add the examples to every command below the app."""
    for command in app.registered_commands:
        function = getattr(command.callback, "__name__", "")
        name = command.name or function.replace("_", "-")
        command.epilog = _epilog(f"{path} {name}".strip())
    for group in app.registered_groups:
        if group.typer_instance is not None:
            name = f"{path} {group.name}".strip()
            group.epilog = _epilog(name)
            add_examples(group.typer_instance, name)


def _epilog(path: str) -> str | None:
    examples = EXAMPLES.get(path)
    # After \b, click keeps the line breaks of a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {each}" for each in examples) if examples else None
