"""Hollow nodes: many simulated nodes in one process, and the scenario that scripts them and their pods.

    scenario = load_scenario(Path("scenario.yaml"))
    nodes = HollowNodes(client, HollowSettings(nodes=1000), SystemClock(), scenario)
    ... await nodes.run() ...

`HollowNodes` runs the nodes and counts pods by phase; `scenario` defines how pods behave and when nodes are down,
reproducibly for a seed; `generated_pods` creates and deletes the simulation's own pods.
"""

from podlife.kubelet.hollow.generated_pods import create_pods, delete_nodes, delete_pods
from podlife.kubelet.hollow.hollow_nodes import (
    HOLLOW_LABEL,
    HollowNodes,
    HollowProgress,
    HollowSettings,
    percentile,
)
from podlife.kubelet.hollow.scenario import Scenario
from podlife.kubelet.hollow.scenario_file import load_scenario, parse_scenario

__all__ = [
    "HOLLOW_LABEL",
    "HollowNodes",
    "HollowProgress",
    "HollowSettings",
    "Scenario",
    "create_pods",
    "delete_nodes",
    "delete_pods",
    "load_scenario",
    "parse_scenario",
    "percentile",
]
