"""Tokens of an expression, and the values of string and bytes literals."""

from __future__ import annotations

import re
from typing import NamedTuple

from podlife.api.cel.errors import Issue

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = (
    r'[rR]"""(?:.|\n)*?"""|[rR]\'\'\'(?:.|\n)*?\'\'\''
    r'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\''
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_TOKEN = re.compile(
    r"(?P<space>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "'": "'", "\\": "\\", "?": "?", "`": "`",
}  # fmt: skip
_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


class Token(NamedTuple):
    """`kind` is the symbol or keyword itself, or the grammar's name of the token."""

    kind: str
    text: str
    position: int


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens, with an `<EOF>` at the end, and what the lexer drops."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            text = _unrecognized(source, position)
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{_visible(text)}'"))
            position += len(text)
            continue
        kind, text = match.lastgroup or "", match.group()
        if kind == "symbol" or (kind == "IDENTIFIER" and text in _KEYWORDS):
            kind = text
        if kind != "space":
            tokens.append(Token(kind, text, position))
        position = match.end()
    tokens.append(Token("<EOF>", "<EOF>", len(source)))
    return tokens, issues


def _unrecognized(source: str, position: int) -> str:
    """What ANTLR's lexer drops: an unterminated string up to the character that cannot continue it."""
    quote = source[position]
    if quote not in "\"'":
        # Half of an operator is dropped with the character that does not complete it.
        return source[position : position + (2 if quote in "&|=" else 1)]
    end = position + 1
    while end < len(source) and source[end] not in "\n\r":
        if source[end] == "\\":
            escape = re.compile(_ESCAPE).match(source, end)
            if escape is None:
                return source[position : min(end + 2, len(source))]
            end = escape.end()
        else:
            end += 1
    return source[position : end + 1]


def _visible(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def string_value(text: str) -> str:
    """Raises ValueError with cel-go's text."""
    raw, body = _body(text)
    if raw:
        return body
    return _ESCAPED.sub(lambda match: _character(match[1]), body)


def bytes_value(text: str) -> bytes:
    raw, body = _body(text[1:])
    if raw:
        return body.encode()
    out = bytearray()
    position = 0
    for match in _ESCAPED.finditer(body):
        out += body[position : match.start()].encode()
        code = match[1]
        if code[0] in "xX":
            out.append(int(code[1:], 16))
        elif len(code) == 3 and code.isdigit():
            out.append(int(code, 8))
        elif code[0] in "uU" and len(code) > 1:
            raise ValueError("unable to unescape string")
        else:
            out += _character(code).encode()
        position = match.end()
    return bytes(out + body[position:].encode())


def _body(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return raw, text[width:-width].replace("\r\n", "\n").replace("\r", "\n")


def _character(code: str) -> str:
    if code in _SIMPLE:
        return _SIMPLE[code]
    number = int(code, 8) if code[0].isdigit() else int(code[1:], 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise ValueError("invalid unicode code point")
    return chr(number)
