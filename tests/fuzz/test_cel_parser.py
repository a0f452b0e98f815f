"""Sources that no author would write: the parser answers with a program or a CelError, and quickly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podlife.api import cel
from tests.kit import cel_cases

TABLE = [case["expr"] for case in cel_cases.cases()]
PIECES = [
    *"()[]{}.,?:!-+*/%<>=&|'\"`\\\n\t@#$ ",
    "in",
    "true",
    "null",
    "has",
    "map",
    "'''",
    'r"',
    "0x",
    "1e",
    "9" * 30,
    "\ud7ff",
    "é",
    "//",
]
ENVIRONMENT = cel.Environment({"self": cel.DYN, "d": cel.DYN})


@st.composite
def mutated(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(TABLE))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(source)))
        end = min(len(source), start + draw(st.integers(0, 4)))
        source = source[:start] + draw(st.sampled_from(["", *PIECES])) + source[end:]
    return source


@given(
    st.one_of(mutated(), st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
)
def test_any_text_is_compiled_or_refused(source: str) -> None:
    try:
        program = cel.compile(source, ENVIRONMENT)
    except cel.CelError:
        return
    assert program.source == source
