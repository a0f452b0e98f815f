"""Headers of HTTP/2 (RFC 7541): as much as one question needs.

Ours are written out in full, which every server understands. Those of an answer are decoded with all that a server may
use: the static and the dynamic table and the Huffman code. Anything else raises `HpackError`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

_TABLE_BYTES = 4096
# What an entry of the table costs beside its letters.
_ENTRY_BYTES = 32
_END_OF_STRING = 256

# Appendix A: name, and value where it has one.
_STATIC_LINES = """
:authority :method=GET :method=POST :path=/ :path=/index.html :scheme=http :scheme=https :status=200
:status=204 :status=206 :status=304 :status=400 :status=404 :status=500 accept-charset
accept-encoding=gzip,deflate accept-language accept-ranges accept access-control-allow-origin age allow
authorization cache-control content-disposition content-encoding content-language content-length
content-location content-range content-type cookie date etag expect expires from host if-match
if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards
proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie
strict-transport-security transfer-encoding user-agent vary via www-authenticate
"""
_STATIC = [(name, value) for name, _, value in (each.partition("=") for each in _STATIC_LINES.split())]

# Appendix B: how many bits each symbol has, A for 5, B for 6, and so on. The code is canonical: shorter before longer,
# and among equals in order, so that its lengths say it all.
_LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABC"
    "BAABCCCCCKGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQR"
    "QQSRRUUTTVSVWVVWWWWWXWWWWWVZ"
)


def _codes() -> dict[tuple[int, int], int]:
    """Symbols by how many bits their code has and what it is."""
    bits = [ord(letter) - ord("A") + 5 for letter in _LENGTHS]
    codes: dict[tuple[int, int], int] = {}
    code = length = 0
    for symbol in sorted(range(len(bits)), key=lambda each: (bits[each], each)):
        code <<= bits[symbol] - length
        length = bits[symbol]
        codes[length, code] = symbol
        code += 1
    return codes


_SYMBOLS = _codes()


class HpackError(ValueError):
    """These are no headers."""


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    """Each as a literal that is not to be remembered."""
    out = bytearray()
    for name, value in headers:
        out.append(0)
        for text in (name.encode("ascii"), value.encode("utf-8")):
            out += _integer(len(text), 7) + text
    return bytes(out)


def _integer(value: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out = bytearray([most])
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


class Decoder:
    """Of one connection: it remembers what the other side said is worth remembering."""

    def __init__(self) -> None:
        self._table: deque[tuple[str, str]] = deque()
        self._bytes = 0
        self._most_bytes = _TABLE_BYTES

    def decode(self, block: bytes) -> list[tuple[str, str]]:
        try:
            return list(self._headers(_Reader(block)))
        except IndexError:
            raise HpackError("headers that end too early, or refer to nothing") from None

    def _headers(self, reader: _Reader) -> Iterator[tuple[str, str]]:
        while not reader.is_at_end:
            first = reader.peek()
            if first & 0x80:
                yield self._entry(reader.integer(7))
            elif first & 0xE0 == 0x20:
                self._resize(reader.integer(5))
            else:
                is_remembered = bool(first & 0x40)
                index = reader.integer(6 if is_remembered else 4)
                name = self._entry(index)[0] if index else reader.string()
                header = (name, reader.string())
                if is_remembered:
                    self._remember(header)
                yield header

    def _entry(self, index: int) -> tuple[str, str]:
        if index < 1:
            raise HpackError("a header that refers to nothing")
        if index <= len(_STATIC):
            name, value = _STATIC[index - 1]
            return name, value
        return self._table[index - len(_STATIC) - 1]

    def _resize(self, most_bytes: int) -> None:
        if most_bytes > _TABLE_BYTES:
            raise HpackError("a table of headers larger than allowed")
        self._most_bytes = most_bytes
        self._shrink()

    def _remember(self, header: tuple[str, str]) -> None:
        self._table.appendleft(header)
        self._bytes += _cost(header)
        self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes:
            self._bytes -= _cost(self._table.pop())


def _cost(header: tuple[str, str]) -> int:
    return len(header[0]) + len(header[1]) + _ENTRY_BYTES


class _Reader:
    def __init__(self, block: bytes) -> None:
        self._block = block
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._block)

    def peek(self) -> int:
        return self._block[self._at]

    def integer(self, bits: int) -> int:
        most = (1 << bits) - 1
        value = self._next() & most
        if value < most:
            return value
        for shift in range(0, 35, 7):
            byte = self._next()
            value += (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise HpackError("a number that is too large")

    def string(self) -> str:
        is_huffman = bool(self.peek() & 0x80)
        length = self.integer(7)
        data = self._block[self._at : self._at + length]
        if len(data) < length:
            raise HpackError("a text that ends too early")
        self._at += length
        return (_unpacked(data) if is_huffman else data).decode("latin-1")

    def _next(self) -> int:
        byte = self._block[self._at]
        self._at += 1
        return byte


def _unpacked(data: bytes) -> bytes:
    out = bytearray()
    length = code = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code = code << 1 | byte >> shift & 1
            length += 1
            symbol = _SYMBOLS.get((length, code))
            if symbol is not None:
                if symbol == _END_OF_STRING:
                    raise HpackError("a text that says it ends")
                out.append(symbol)
                length = code = 0
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("a text that is not filled up as it should be")
    return bytes(out)
