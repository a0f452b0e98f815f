"""Where a container's log goes."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from podlife.kubelet.runtime import ContainerConfig, InvalidContainerError, SandboxConfig


def log_path_of(sandbox: SandboxConfig, config: ContainerConfig) -> Path | None:
    """Never outside of the sandbox's folder of logs: the names in it come from users."""
    if sandbox.log_directory is None or not config.log_path:
        return None
    relative = PurePosixPath(config.log_path)
    if relative.is_absolute() or ".." in relative.parts or "\0" in config.log_path or not relative.parts:
        raise InvalidContainerError(
            f"log path {config.log_path!r} of container {config.name!r} leaves the pod's folder of logs"
        )
    return Path(sandbox.log_directory) / relative
