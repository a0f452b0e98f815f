"""Random expressions that mostly compile: for each type, templates whose holes are expressions of other types.

A hole is `<type>`; `<type+>` also sees the variables that the template binds, which are written `$type`.
"""

from __future__ import annotations

import random
import re

DEPTH = 5
LONGEST = 400

LEAVES = {
    "int": ["self.n", "self.o.x", "1", "2", "-3", "self.m['a']", "self.l.size()", "0"],
    "str": ["self.s", "self.e", "'a'", "'hello'", "''", "self.l[0]", "self.a__dash__b", "string(self.n)"],
    "bool": ["self.b", "true", "false", "has(self.o.y)", "has(self.nul)", "self.n > 2", "'a' in self.m"],
    "strs": ["self.l", "self.set", "['a', self.s]", "[]", "['x', 'y']", "self.ls.map(q, q.k)"],
    "ints": ["[1, 2, 3]", "[self.n, 1]", "self.mm['x']", "lists.range(3)", "self.l.map(q, q.size())"],
    "double": ["self.f", "1.5", "-2.0", "double(self.n)"],
    "opt": ["self.o.?x", "self.m[?'a']", "self.m[?'zz']", "optional.of(1)", "optional.none()"],
    "map": ["self.m", "{'a': 1}", "{'k': self.n, 'j': 2}"],
    "dyn": ["self.p", "dyn(self.n)", "dyn(self.s)", "dyn(self.l)"],
}
TEMPLATES = {
    "int": [
        *(f"(<int> {sign} <int>)" for sign in "+-*/%"),
        *(
            "size(<strs>)",
            "<str>.size()",
            "<ints>.sum()",
            "<ints>.max()",
            "<ints>[<int>]",
            "<opt>.orValue(<int>)",
        ),
        *("(<bool> ? <int> : <int>)", "<str>.indexOf(<str>)", "<map>[<str>]", "-(<int>)", "int(<double>)"),
        *("<strs>.lastIndexOf(<str>)", "<map>.a"),
    ],
    "str": [
        *("(<str> + <str>)", "<strs>.join(<str>)", "<str>.upperAscii()", "<str>.replace(<str>, <str>)"),
        *("<strs>[<int>]", "string(<int>)", "(<bool> ? <str> : <str>)", "'%s-%d'.format([<str>, <int>])"),
        *("<str>.substring(<int>)", "<str>.find(<str>)", "strings.quote(<str>)", "string(<double>)"),
        *("<strs>.max()", "<strs>.first().orValue(<str>)", "<str>.charAt(<int>)", "<str>.trim()"),
    ],
    "bool": [
        *(f"(<int> {sign} <int>)" for sign in ("<", "<=", ">", ">=", "==", "!=")),
        *(f"(<str> {sign} <str>)" for sign in ("<", ">", "==", "!=")),
        *(
            "(<bool> && <bool>)",
            "(<bool> || <bool>)",
            "(<bool> && <bool> || <bool>)",
            "(<bool> || <bool> || <bool>)",
        ),
        *(f"<strs>.{macro}($str, <bool+>)" for macro in ("all", "exists", "exists_one")),
        *(f"<ints>.{macro}($int, <bool+>)" for macro in ("all", "exists")),
        *(f"<strs>.{macro}($int, $str, <bool+>)" for macro in ("all", "exists", "existsOne")),
        *(
            "!<bool>",
            "(<str> in <strs>)",
            "(<int> in <ints>)",
            "<str>.startsWith(<str>)",
            "<str>.contains(<str>)",
        ),
        *(
            "<str>.matches(<str>)",
            "(<strs> == <strs>)",
            "<opt>.hasValue()",
            "(<double> < <int>)",
            "(<dyn> == <dyn>)",
        ),
        *("(<str> in <map>)", "<strs>.isSorted()", "sets.contains(<strs>, <strs>)", "(<dyn> == <int>)"),
        *("(type(<dyn>) == string)", "isIP(<str>)", "(<map> == <map>)", "(self.d < duration('2h'))"),
        "(self.t > timestamp('2020-01-01T00:00:00Z'))",
    ],
    "strs": [
        *("<strs>.map($str, <str+>)", "<ints>.map($int, <str+>)", "<strs>.map($str, <bool+>, <str+>)"),
        *(
            "<strs>.filter($str, <bool+>)",
            "<strs>.transformList($int, $str, <str+>)",
            "<strs>.sortBy($str, <int+>)",
        ),
        *("(<strs> + <strs>)", "[<str>, <str>]", "(<bool> ? <strs> : <strs>)", "<strs>.reverse()"),
        *("<strs>.distinct()", "<strs>.sort()", "<strs>.slice(<int>, <int>)", "<str>.split(<str>)"),
        "<str>.findAll(<str>)",
    ],
    "ints": [
        *("<strs>.map($str, <int+>)", "<ints>.map($int, <bool+>, <int+>)", "<ints>.filter($int, <bool+>)"),
        *("<strs>.transformList($int, $str, <int+>)", "<ints>.sortBy($int, <str+>)", "(<ints> + <ints>)"),
        *(
            "[<int>, <int>]",
            "(<bool> ? <ints> : <ints>)",
            "<ints>.reverse()",
            "<ints>.distinct()",
            "<ints>.sort()",
        ),
        *("<ints>.slice(<int>, <int>)", "[<ints>, <ints>].flatten()", "lists.range(2)"),
    ],
    "double": ["(<double> + <double>)", "(<double> / <double>)", "(<double> * <double>)", "double(<int>)"],
    "opt": [
        *(
            "<opt>.optMap($int, <int+>)",
            "optional.of(<int>)",
            "<opt>.or(<opt>)",
            "<ints>[?<int>]",
            "<map>[?<str>]",
        ),
        *("optional.ofNonZeroValue(<int>)", "<ints>.last()"),
    ],
    # More than one entry would be visited in an order that Go does not fix.
    "map": ["{'a': 5}.transformMap($str, $int, <int+>)", "{<str>: <int>}", "{'a': <int>, ?'b': <opt>}"],
    "dyn": ["dyn(<int>)", "dyn(<str>)", "dyn(<bool>)", "dyn(<strs>)", "dyn(<double>)"],
}
_HOLE = re.compile(r"<([a-z]+)(\+?)>|\$([a-z]+)")


def expression(chance: random.Random) -> str:
    while True:
        kind = chance.choice(["bool", "bool", "bool", "int", "str", "strs", "ints", "opt", "map"])
        source = _Generator(chance).make(kind, chance.randint(1, DEPTH), [])
        if len(source) <= LONGEST:
            return source


class _Generator:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0

    def make(self, kind: str, depth: int, variables: list[tuple[str, str]]) -> str:
        """`variables` are names with their types; `+` at a hole adds those that the template binds."""
        if depth <= 0 or self.chance.random() < 0.15:
            fitting = [name for name, of in variables if of == kind]
            use_variable = fitting and self.chance.random() < 0.6
            return self.chance.choice(fitting if use_variable else LEAVES[kind])
        bound: list[tuple[str, str]] = []

        def fill(match: re.Match[str]) -> str:
            if match[3]:
                self.count += 1
                bound.append((f"v{self.count}", match[3]))
                return bound[-1][0]
            return self.make(match[1], depth - 1, [*variables, *bound] if match[2] else variables)

        return _HOLE.sub(fill, self.chance.choice(TEMPLATES[kind]))
