"""`python -m tests.real.podgc`: write the differences between the collectors into docs/parity.md."""

from __future__ import annotations

from tests.real.podgc.differences import write_parity

write_parity()
