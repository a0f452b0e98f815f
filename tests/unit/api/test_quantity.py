from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.quantity import NANOS, Quantity, canonical_quantity, parse_nanos, parse_quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.", "1."),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1025Mi", "1025Mi"),
        ("1000000", "1M"),
        ("12e6", "12e6"),
        ("1E", "1E"),
        ("-1500m", "-1500m"),
        ("0.1n", "1n"),
        ("0.5Ki", "512"),
        ("1.234", "1.234"),
    ],
)
def test_a_quantity_is_stored_in_upstreams_canonical_form(text: str, canonical: str) -> None:
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize(("smaller", "larger"), [("999m", "1"), ("1M", "1Mi"), ("1Gi", "2e9"), ("-1", "0")])
def test_quantities_of_different_notation_compare_by_amount(smaller: str, larger: str) -> None:
    assert parse_nanos(smaller) < parse_nanos(larger)


def test_what_is_finer_than_a_nano_is_rounded_away_from_zero() -> None:
    assert parse_nanos("0.0000000001") == 1
    assert parse_nanos("-0.0000000001") == -1


def test_a_binary_quantity_is_capped_at_the_largest_integer() -> None:
    assert parse_nanos("9000Ei") == (2**63 - 1) * NANOS


@pytest.mark.parametrize("text", ["", "x", "1x", "--1", "1 ", "1e3x", "1.2.3", "١"])
def test_text_that_is_no_quantity_is_refused_in_upstreams_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantities must match the regular expression|suffix"):
        parse_quantity(text)


def test_a_suffix_nobody_knows_is_named_as_the_problem() -> None:
    with pytest.raises(ValueError, match="unable to parse quantity's suffix"):
        parse_quantity("1KK")


@pytest.mark.parametrize("text", ["1e999999999", "9" * 5000])
def test_a_hostile_size_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="unable to parse"):
        parse_quantity(text)


@given(st.integers(min_value=-(2**62), max_value=2**62), st.sampled_from(["decimal", "exponent", "binary"]))
def test_the_text_of_a_quantity_reads_back_as_the_same_amount(nanos: int, style: str) -> None:
    assert parse_nanos(str(Quantity(nanos, style))) == nanos


@given(st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,4})?(|n|u|m|k|M|G|T|Ki|Mi|Gi|e[0-9])", fullmatch=True))
def test_the_canonical_form_is_the_same_amount_and_stays_as_it_is(text: str) -> None:
    canonical = canonical_quantity(text)
    assert parse_nanos(canonical) == parse_nanos(text)
    assert canonical_quantity(canonical) == canonical
