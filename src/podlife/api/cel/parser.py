"""Source text to syntax tree, with the positions and messages of cel-go.

Recursion is bounded: nesting at `MAX_NESTING`, chains of operators at `MAX_CHAIN`, the source at `MAX_SOURCE`. After
the first syntax error the parser stops, where cel-go's tries to recover and may report more.
"""

from __future__ import annotations

import math
from typing import NoReturn

from podlife.api.cel.errors import CelError, Issue, display
from podlife.api.cel.lexer import Token, bytes_value, string_value, tokenize
from podlife.api.cel.macros import MacroError, expand
from podlife.api.cel.syntax import (
    Call,
    FieldEntry,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from podlife.api.cel.values import Uint

MAX_SOURCE = 100_000
MAX_CHAIN = 250
# Each level of nesting takes about six frames of Python here and in the checker; upstream allows 250.
MAX_NESTING = 60

_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
})  # fmt: skip
_LEVELS = ({"||"}, {"&&"}, {"<", "<=", ">=", ">", "==", "!=", "in"}, {"+", "-"}, {"*", "/", "%"})
_START = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_INDEX_START = _START.replace("'!',", "'!', '?',")
_STARTS = frozenset({
    "[", "{", "(", ".", "-", "!", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING",
    "BYTES", "IDENTIFIER",
})  # fmt: skip


class _SyntaxError(Exception):
    pass


def parse(source: str, *, with_bind: bool = False) -> Node:
    """Raises CelError with all that is wrong."""
    if len(source) > MAX_SOURCE:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SOURCE}"
        raise CelError(display(source, [Issue(-1, message)]))
    parser = _Parser(source, with_bind)
    try:
        tree = parser.whole()
    except _SyntaxError:
        tree = None
    if parser.issues or tree is None:
        raise CelError(display(source, parser.issues))
    return tree


class _Parser:
    def __init__(self, source: str, with_bind: bool) -> None:
        self.tokens, self.issues = tokenize(source)
        self.with_bind = with_bind
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def whole(self) -> Node:
        tree = self.expression()
        if self.token.kind != "<EOF>":
            extra = len(self.tokens) - self.index == 2
            self.fail(f"{'extraneous' if extra else 'mismatched'} input {self.quoted()} expecting <EOF>")
        return tree

    def quoted(self) -> str:
        return f"'{self.token.text}'"

    def fail(self, message: str) -> NoReturn:
        self.issues.append(Issue(self.token.position, f"Syntax error: {message}"))
        raise _SyntaxError

    def take(self, *kinds: str) -> Token | None:
        if self.token.kind not in kinds:
            return None
        self.index += 1
        return self.tokens[self.index - 1]

    def expect(self, kind: str, expecting: str = "") -> Token:
        if token := self.take(kind):
            return token
        # ANTLR reports a token as missing where the rest would fit behind it.
        is_missing = not expecting and (kind != ":" or self.token.kind in _STARTS)
        expected = f"mismatched input {self.quoted()} expecting {expecting or repr(kind)}"
        return self.fail(f"missing '{kind}' at {self.quoted()}" if is_missing else expected)

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_NESTING}"))
            raise _SyntaxError
        condition = self.binary(0)
        if question := self.take("?"):
            positive = self.binary(0)
            self.expect(":")
            negative = self.expression()
            condition = Call(question.position, "_?_:_", None, [condition, positive, negative])
        self.depth -= 1
        return condition

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        operands = [self.binary(level + 1)]
        operators: list[Token] = []
        while operator := self.take(*_LEVELS[level]):
            operators.append(operator)
            operands.append(self.binary(level + 1))
        if not operators:
            return operands[0]
        if level < 2:
            return _balanced(operands, operators, 0, len(operators) - 1)
        if len(operators) >= MAX_CHAIN:
            self.issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_CHAIN}"))
            raise _SyntaxError
        left = operands[0]
        for operator, right in zip(operators, operands[1:], strict=True):
            name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            left = Call(operator.position, name, None, [left, right])
        return left

    def unary(self) -> Node:
        kind = self.token.kind
        if kind not in ("!", "-"):
            return self.member(self.primary())
        first = self.token
        count = 0
        while self.token.kind == kind:
            following = self.tokens[self.index + 1].kind
            # One sign belongs to the literal; of several, all are operators.
            if kind == "-" and count == 0 and following in ("NUM_INT", "NUM_FLOAT"):
                break
            self.index += 1
            count += 1
        if kind == "-" and self.token.kind == "!":
            self.fail("no viable alternative at input '-!'")
        operand = self.member(self.primary())
        if count % 2 == 0:
            return operand
        return Call(first.position, f"{kind}_", None, [operand])

    def member(self, node: Node) -> Node:
        links = 0
        while token := self.take(".", "["):
            links += 1
            if links > MAX_CHAIN:
                self.issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_CHAIN}"))
                raise _SyntaxError
            optional = self.take("?") is not None
            if token.kind == "[":
                if self.token.kind == "<EOF>" and not optional:
                    self.fail(f"mismatched input '<EOF>' expecting {_INDEX_START}")
                index = self.expression()
                self.expect("]")
                node = Call(token.position, "_[?_]" if optional else "_[_]", None, [node, index])
                continue
            name = self.take("IDENTIFIER", "ESC_IDENTIFIER")
            if name is None:
                self.no_name(optional)
            if name.kind == "ESC_IDENTIFIER":
                self.issues.append(Issue(token.position, "unsupported syntax: '`'"))
            if optional:
                field = Literal(name.position, name.text)
                node = Call(token.position, "_?._", None, [node, field])
            elif name.kind == "IDENTIFIER" and (opening := self.take("(")):
                node = self.call(opening, name.text, node)
            else:
                node = Select(token.position, node, name.text)
        return node

    def no_name(self, optional: bool) -> NoReturn:
        if optional:
            self.fail(f"mismatched input {self.quoted()} expecting {{IDENTIFIER, ESC_IDENTIFIER}}")
        if self.token.kind in ("true", "false", "null"):
            self.fail(f"mismatched input {self.quoted()} expecting IDENTIFIER")
        shown = "" if self.token.kind == "<EOF>" else self.token.text
        self.fail(f"no viable alternative at input '.{shown}'")

    def call(self, opening: Token, name: str, target: Node | None) -> Node:
        arguments: list[Node] = []
        if self.token.kind != ")":
            arguments.append(self.expression())
            while self.take(","):
                arguments.append(self.expression())
            self.expect(")", "" if self.token.kind == "<EOF>" else "{')', ','}")
        else:
            self.index += 1
        try:
            expanded = expand(opening.position, name, target, arguments, with_bind=self.with_bind)
        except MacroError as error:
            self.issues.append(Issue(error.position, str(error)))
            return Literal(opening.position, None)
        return expanded or Call(opening.position, name, target, arguments)

    def primary(self) -> Node:
        token = self.token
        if token.kind not in _STARTS:
            self._unexpected()
            token = self.token
            if token.kind == "!":
                return self.unary()
        self.index += 1
        match token.kind:
            case "(":
                nested = self.expression()
                self.expect(")")
                return nested
            case "[":
                return self.list_literal(token)
            case "{":
                return self.map_literal(token)
            case ".":
                name = self.expect("IDENTIFIER", "IDENTIFIER")
                return self.name(name, f".{name.text}")
            case "IDENTIFIER":
                return self.name(token, token.text)
            case "-" | "NUM_INT" | "NUM_UINT" | "NUM_FLOAT":
                return self.number(token)
            case "true" | "false" | "null":
                return Literal(token.position, {"true": True, "false": False, "null": None}[token.kind])
        try:
            value = string_value(token.text) if token.kind == "STRING" else bytes_value(token.text)
        except ValueError as error:
            self.issues.append(Issue(token.position, str(error)))
            value = ""
        return Literal(token.position, value)

    def _unexpected(self) -> None:
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)].kind
        if self.token.kind == "<EOF>" or following not in _STARTS:
            self.fail(f"mismatched input {self.quoted()} expecting {_START}")
        # One token too many is skipped, as ANTLR does.
        message = f"Syntax error: extraneous input {self.quoted()} expecting {_START}"
        self.issues.append(Issue(self.token.position, message))
        self.index += 1

    def name(self, token: Token, text: str) -> Node:
        if struct := self._struct_name(text):
            return self.struct_literal(struct)
        if token.text in _RESERVED:
            self.issues.append(Issue(token.position, f"reserved identifier: {token.text}"))
            return Literal(token.position, None)
        if opening := self.take("("):
            return self.call(opening, text, None)
        return Ident(token.position, text)

    def _struct_name(self, first: str) -> str | None:
        """`a.b.C` where a `{` follows; the names are then consumed."""
        index, names = self.index, [first]
        while self.tokens[index].kind == "." and self.tokens[index + 1].kind == "IDENTIFIER":
            names.append(self.tokens[index + 1].text)
            index += 2
        if self.tokens[index].kind != "{":
            return None
        self.index = index
        return ".".join(names)

    def number(self, token: Token) -> Node:
        position, sign = token.position, ""
        if token.kind == "-":
            if self.token.kind not in ("NUM_INT", "NUM_FLOAT"):
                self.fail(f"no viable alternative at input '-{self.token.text}'")
            token, sign = self.token, "-"
            self.index += 1
        text = token.text
        if token.kind == "NUM_FLOAT":
            value = float(sign + text)
            if math.isinf(value):
                self.issues.append(Issue(position, "invalid double literal"))
            return Literal(position, value)
        is_unsigned = token.kind == "NUM_UINT"
        text = text[:-1] if is_unsigned else text
        # Longer digits are out of range, and Python refuses to convert very long ones.
        number = int(sign + text, 16 if text.startswith("0x") else 10) if len(text) < 80 else 2**64
        lowest, highest = (0, 2**64 - 1) if is_unsigned else (-(2**63), 2**63 - 1)
        if not lowest <= number <= highest:
            self.issues.append(Issue(position, f"invalid {'uint' if is_unsigned else 'int'} literal"))
        return Literal(position, Uint(number) if is_unsigned else number)

    def list_literal(self, token: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self.token.kind != "]":
            if self.take("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self.take(",") and self.token.kind != "]":
                self.fail(f"mismatched input {self.quoted()} expecting {{']', ','}}")
        self.index += 1
        return ListLiteral(token.position, elements, frozenset(optional))

    def map_literal(self, token: Token) -> Node:
        entries: list[MapEntry] = []
        while self.token.kind != "}":
            optional = self.take("?") is not None
            key = self.expression()
            colon = self.expect(":")
            entries.append(MapEntry(colon.position, key, self.expression(), optional))
            if not self.take(",") and self.token.kind != "}":
                self.fail(f"mismatched input {self.quoted()} expecting {{'}}', ','}}")
        self.index += 1
        return MapLiteral(token.position, entries)

    def struct_literal(self, name: str) -> Node:
        opening = self.expect("{")
        entries: list[FieldEntry] = []
        while self.token.kind != "}":
            optional = self.take("?") is not None
            field = self.expect("IDENTIFIER", "{'}', ',', IDENTIFIER, ESC_IDENTIFIER}")
            colon = self.expect(":")
            entries.append(FieldEntry(colon.position, field.text, self.expression(), optional))
            if not self.take(",") and self.token.kind != "}":
                self.fail(f"mismatched input {self.quoted()} expecting {{'}}', ','}}")
        self.index += 1
        return StructLiteral(opening.position, name, entries)


def _balanced(operands: list[Node], operators: list[Token], low: int, high: int) -> Node:
    """Long chains of `&&` and `||` become flat trees; the estimated cost depends on their shape."""
    middle = (low + high + 1) // 2
    left = operands[middle] if middle == low else _balanced(operands, operators, low, middle - 1)
    right = operands[middle + 1] if middle == high else _balanced(operands, operators, middle + 1, high)
    return Call(operators[middle].position, f"_{operators[middle].kind}_", None, [left, right])
