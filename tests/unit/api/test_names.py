from __future__ import annotations

import pytest

from podlife.api.names import (
    check_config_key,
    check_dns_label,
    check_dns_subdomain,
    check_env_name,
    check_label_key,
    check_label_value,
    check_path_segment,
    check_port_name,
    generate_name,
)


@pytest.mark.parametrize("name", ["a", "1", "a-b", "a" * 63])
def test_a_label_of_lower_case_letters_digits_and_dashes_is_accepted(name: str) -> None:
    assert check_dns_label(name) == []


def test_a_name_with_dots_is_a_subdomain_and_no_label() -> None:
    assert check_dns_subdomain("a.b") == []
    assert check_dns_label("a.b") == ["must not contain dots"]


def test_a_name_that_is_too_long_and_malformed_is_told_both() -> None:
    problems = check_dns_label("A" * 64)
    assert problems[0] == "must be no more than 63 characters"
    assert problems[1].startswith("a lowercase RFC 1123 label must consist of")


def test_a_final_line_break_is_no_part_of_a_name() -> None:
    assert check_dns_label("a\n") != []
    assert check_label_value("a\n") != []


def test_a_prefix_may_end_in_a_dash_but_a_name_may_not() -> None:
    assert check_dns_label("web-", prefix=True) == []
    assert check_dns_label("web-") != []


@pytest.mark.parametrize("key", ["a", "A.b_c", "example.com/x", "a" * 63])
def test_a_qualified_name_with_or_without_prefix_is_accepted(key: str) -> None:
    assert check_label_key(key) == []


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("A_/x", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a valid label key must consist of"),
        ("a" * 64, "name part must be no more than 63 bytes"),
    ],
)
def test_what_is_wrong_with_a_qualified_name_is_told_by_part(key: str, problem: str) -> None:
    assert check_label_key(key)[0].startswith(problem)


def test_length_is_counted_in_bytes() -> None:
    assert check_label_value("ä" * 32)[0] == "must be no more than 63 bytes"


def test_a_config_key_may_become_a_file_and_so_not_step_back() -> None:
    assert check_config_key("a.b-c_D") == []
    assert check_config_key("..") == ["must not be '..'"]
    assert check_config_key("..a") == ["must not start with '..'"]


def test_an_environment_variable_may_have_any_printable_name_without_an_equals_sign() -> None:
    assert check_env_name("a b/1") == []
    assert check_env_name("a=b") != []
    assert check_env_name("ä") != []


def test_a_port_name_needs_a_letter_and_single_hyphens_inside() -> None:
    assert check_port_name("http-1") == []
    assert check_port_name("1") == ["must contain at least one letter (a-z)"]
    assert check_port_name("a--b-") == [
        "must not contain consecutive hyphens",
        "must not begin or end with a hyphen",
    ]


def test_a_path_segment_may_be_nearly_anything_but_no_way_out() -> None:
    assert check_path_segment("A b:c") == []
    assert check_path_segment("..") == ["may not be '..'"]
    assert check_path_segment("a/b%c") == ["may not contain '/'", "may not contain '%'"]


def test_a_generated_name_keeps_its_base_and_stays_within_63_characters() -> None:
    name = generate_name("web-")
    assert name.startswith("web-")
    assert len(name) == 9
    assert set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len(generate_name("a" * 100)) == 63


def test_generated_names_differ() -> None:
    assert len({generate_name("x-") for _ in range(100)}) > 90
