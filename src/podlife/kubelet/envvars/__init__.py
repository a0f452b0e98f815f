"""The environment of containers: variables, references to them, the downward API, service variables. Pure."""

from __future__ import annotations

from podlife.kubelet.envvars.downward_api import (
    ContainerConfigError,
    DownwardContext,
    field_value,
    format_map,
    resource_value,
)
from podlife.kubelet.envvars.environment import EnvironmentSources, command_and_args, expand
from podlife.kubelet.envvars.services import service_variables

__all__ = [
    "ContainerConfigError",
    "DownwardContext",
    "EnvironmentSources",
    "command_and_args",
    "expand",
    "field_value",
    "format_map",
    "resource_value",
    "service_variables",
]
