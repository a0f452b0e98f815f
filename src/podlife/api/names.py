"""Validation of names, and generated names.

Every check returns the problems of a value in kube-apiserver's words; an empty list if it is valid. Valid values cost
one regular expression, since every write is checked several times. Callers attach problems to field paths.
"""

from __future__ import annotations

import random
import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_WILDCARD = r"\*\." + _SUBDOMAIN
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = _SEARCH_LABEL + r"(\." + _SEARCH_LABEL + ")*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_search = re.compile(_SEARCH).fullmatch
_is_key = re.compile(_KEY).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_env_name = re.compile(r"[ -<>-~]+").fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_CHANCE = random.SystemRandom()
_SUFFIX_LENGTH = 5
_LONGEST_BASE = 63 - _SUFFIX_LENGTH

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def _rule(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} ({'e.g. ' if examples else ''}{shown}regex used for validation is '{pattern}')"


def _too_long(value: str, limit: int, unit: str = "characters") -> list[str]:
    # Upstream counts bytes everywhere, but says so only for labels.
    return [f"must be no more than {limit} {unit}"] if len(value.encode()) > limit else []


def _as_generated(name: str, prefix: bool) -> str:
    # A generateName may end with a dash, because a suffix follows.
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def check_dns_label(name: str, *, prefix: bool = False) -> list[str]:
    name = _as_generated(name, prefix)
    if len(name) <= 63 and _is_label(name):
        return []
    problems = _too_long(name, 63)
    if not _is_label(name):
        dotted = "must not contain dots"
        problems.append(dotted if _is_subdomain(name) else _rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return problems


def check_dns_label_1035(name: str) -> list[str]:
    """A label that begins with a letter: parts of a custom resource's names."""
    problems = _too_long(name, 63)
    if not _is_label_1035(name):
        problems.append(_rule(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return problems


def check_dns_subdomain(name: str, *, prefix: bool = False) -> list[str]:
    name = _as_generated(name, prefix)
    if len(name) <= 253 and _is_subdomain(name):
        return []
    problems = _too_long(name, 253)
    if not _is_subdomain(name):
        problems.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return problems


def check_wildcard_subdomain(name: str) -> list[str]:
    """`*.` and a subdomain: a host of an Ingress."""
    problems = _too_long(name, 253)
    if not _is_wildcard(name):
        problems.append(_rule(_WILDCARD_RULE, _WILDCARD, "*.example.com"))
    return problems


def check_dns_search(name: str) -> list[str]:
    """A search domain of a resolver: a subdomain that may contain underscores."""
    problems = _too_long(name, 253)
    if not _is_search(name):
        problems.append(_rule(_SUBDOMAIN_RULE.replace("'-' or", "'_', '-' or"), _SEARCH, "example.com"))
    return problems


def check_path_segment(name: str, *, prefix: bool = False) -> list[str]:
    """Names of kinds without their own rule: anything that is valid in a URL path."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def check_label_key(key: str) -> list[str]:
    """A qualified name: labels, annotations, finalizers, resources, taints, conditions."""
    if len(key) <= 63 and _is_key(key):
        return []
    parts = key.split("/")
    key_rule = _rule(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {key_rule} {optional}"]
    problems: list[str] = []
    if len(parts) == 2:
        found = check_dns_subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        found = [problem.replace("253 characters", "253 bytes") for problem in found]
        problems += [f"prefix part {problem}" for problem in found]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63, "bytes")]
    if not _is_key(name):
        problems.append(f"name part {key_rule}")
    return problems


def check_label_value(value: str) -> list[str]:
    if len(value) <= 63 and _is_value(value):
        return []
    problems = _too_long(value, 63, "bytes")
    if not _is_value(value):
        text = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(_rule(text, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def check_config_key(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret: it may become a file name."""
    problems = _too_long(key, 253)
    if not _is_config_key(key):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_rule(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def check_env_name(name: str) -> list[str]:
    if _is_env_name(name):
        return []
    if not name:
        return ["environment variable name must be non-empty"]
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def check_http_header_name(name: str) -> list[str]:
    if _is_header(name):
        return []
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [_rule(text, _HEADER, "X-Header-Name")]


def check_percent(text: str) -> list[str]:
    if _is_percent(text):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [_rule(rule, _PERCENT, "1%", "93%")]


def check_port_name(name: str) -> list[str]:
    """A port's name: at most 15 characters, at least one of them a letter."""
    problems = _too_long(name, 15)
    if not _is_port_name(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def generate_name(base: str, chance: random.Random = _CHANCE) -> str:
    """The base, cut so that the whole has at most 63 characters, and five random characters.

    The alphabet has no vowels, to avoid words, and no look-alikes."""
    suffix = "".join(chance.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return base[:_LONGEST_BASE] + suffix
