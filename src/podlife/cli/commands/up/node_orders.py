"""`podlife up NODE` and `podlife down NODE`: start and stop nodes of a running local cluster."""

from __future__ import annotations

from pathlib import Path

from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import choose_state_dir


def order_nodes(data: Path | None, order: str, nodes: list[str]) -> None:
    """`start` or `stop` nodes, and print the outcome."""
    state_dir = choose_state_dir(data)
    for node in nodes:
        is_new = ask(state_dir, {"do": order, "node": node}).get("is_new", True)
        match order, is_new:
            case "start", True:
                print(f"{node} is started")
            case "start", False:
                print(f"{node} runs already")
            case _, True:
                print(f"{node} is stopped; its pods run on")
            case _:
                print(f"{node} is stopped already; its pods run on")
