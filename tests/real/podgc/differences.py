"""Where our collector leaves something else than kube-controller-manager's, on purpose: the state, the pods, why.

The list is exact, as that of the API server's answers is: what is not listed fails, and so does a listed one that
is gone. `docs/parity.md` shows the same list; `python -m tests.real.podgc` writes it there.
"""

from __future__ import annotations

from tests.real.differential.differences import PARITY, Known

BEGIN, END = "<!-- podgc differential: begin -->", "<!-- podgc differential: end -->"

_HELD = (
    "a pod that is deleted at grace 0 and held by a finalizer does not count for the threshold: it is on its way, "
    "and another one must not go in its stead (upstream counts it, so here one more pod goes)"
)

DIFFERENCES: dict[str, Known] = {
    "threshold-and-unscheduled-held": Known(_HELD, ("threshold-and-unscheduled-held/ended-0",))
}


def parity_table() -> str:
    rows = [f"| {known.reason} | `{state}` |" for state, known in DIFFERENCES.items()]
    return "\n".join(["| what differs, and why | seen in |", "|---|---|", *rows])


def write_parity() -> None:
    before, rest = PARITY.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PARITY.write_text(f"{before}{BEGIN}\n{parity_table()}\n{END}{after}")
