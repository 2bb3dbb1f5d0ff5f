# SPDX-License-Identifier: GPL-2.0-or-later
"""The structures of include/hghca: where each member stands, and which bits each macro selects. No compiler is needed.

A structure may have members of fixed width, arrays, other structures, and anonymous structures and unions; a member may
be `packed, aligned(N)`. Anything else raises ValueError. checks() has what the headers assert about themselves.
"""

import re
from typing import NamedTuple

from . import repo

BIG, LITTLE = "big-endian", "little-endian"
# Type -> (bytes, byte order).
TYPES = {"__u8": (1, ""),
         **{f"__{order[0]}e{bits}": (bits // 8, order) for order in (BIG, LITTLE) for bits in (16, 32, 64)}}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DEFINE = re.compile(r"^#define[ \t]+(HGHCA_\w+)[ \t]+(\S.*)$", re.MULTILINE)
ENUMERATOR = re.compile(r"^\s+(HGHCA_\w+)\s*=\s*(\d\w*),", re.MULTILINE)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
ASSERT_SIZE = re.compile(r"^HGHCA_ASSERT_SIZE\((\w+), ([^;]+)\);", re.MULTILINE)
ASSERT_OFFSET = re.compile(r"^HGHCA_ASSERT_OFFSET\((\w+), ([\w.]+), ([^;]+)\);", re.MULTILINE)
TOKEN = re.compile(r"__attribute__\(\([^;]*\)\)|\[[^\]]*\]|\w+|[^\s]")
ALIGNED = re.compile(r"__attribute__\(\(packed, aligned\((\d+)\)\)\)")
SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b")
OPERATORS = re.compile(r"(?:[\w\s()+*<>&|~,-]|//)+")


class Member(NamedTuple):
    """A member of a structure.

    size:   in bytes, of one element.
    count:  number of elements of an array, otherwise 0.
    order:  BIG or LITTLE, "" for a byte or a structure.
    struct: name of the structure that it is, or "".
    """

    offset: int
    size: int
    count: int
    order: str
    struct: str


class Struct(NamedTuple):
    """The size in bytes, and path -> Member, those of anonymous structures and unions as a.b."""

    size: int
    members: dict


def is_reserved(path):
    return path.split(".")[-1].startswith("rsvd")


def without_comments(headers):
    return COMMENT.sub(" ", headers)


def text():
    """The headers of include/hghca, one behind the other, without comments."""
    return without_comments("\n".join(path.read_text() for path in sorted(repo.path("include/hghca").glob("*.h"))))


def macros(headers):
    """Name -> expression, of the macros without arguments."""
    return {name: value.strip() for name, value in DEFINE.findall(headers)}


def mask(high, low):
    """HGHCA_MASK() of hghca/types.h."""
    return (1 << high + 1) - (1 << low)


def value(expression, known):
    """The value of an expression, modulo 2^64; ValueError if the expression is not constant."""
    for _ in range(10):
        names = set(re.findall(r"\bHGHCA_\w+", expression)) - {"HGHCA_MASK"}
        if not names:
            break
        if not names <= known.keys():
            raise ValueError(f"{expression}: {sorted(names - known.keys())} is not known")
        for name in names:
            expression = re.sub(rf"\b{name}\b", f"({known[name]})", expression)
    numbers = SUFFIX.sub(lambda number: str(int(number[1], 0)), expression).replace("/", "//")
    if not OPERATORS.fullmatch(numbers):
        raise ValueError(f"{expression} is no constant expression")
    try:
        return eval(numbers, {"__builtins__": {}, "HGHCA_MASK": mask}) % (1 << 64)
    except (SyntaxError, NameError, TypeError) as error:
        raise ValueError(f"{expression} is no constant expression") from error


class Parser:
    """Lays out the structures of a text in turn, as a compiler does."""

    def __init__(self, headers):
        self.macros = macros(headers)
        self.structs = {}
        self.alignments = {}
        for name, body in STRUCT.findall(headers):
            self.tokens = TOKEN.findall(body) + ["}"]
            size, self.alignments[name], members = self.body(False)
            self.structs[name] = Struct(size, members)

    def take(self, wanted=""):
        """The next token; ValueError when it is not the one wanted."""
        token = self.tokens.pop(0)
        if wanted and token != wanted:
            raise ValueError(f"{token} stands where {wanted} is expected")
        return token

    def body(self, is_union):
        """(size, alignment, members) of what stands before the closing brace."""
        end, largest, alignment, members = 0, 0, 1, {}
        while self.tokens[0] != "}":
            size, align, order, struct, inner = self.type()
            name, count = self.take(), 0
            if not name.isidentifier():
                raise ValueError(f"{name} is no name of a member")
            if self.tokens[0].startswith("["):
                count = value(self.take()[1:-1], self.macros)
            if self.tokens[0].startswith("__attribute__"):
                align = self.aligned(self.take())
            self.take(";")
            start = 0 if is_union else -(-end // align) * align
            if inner is None:
                members[name] = Member(start, size, count, order, struct)
            elif count:
                raise ValueError(f"{name} is an array of an anonymous structure")
            else:
                members |= {f"{name}.{path}": member._replace(offset=start + member.offset)
                            for path, member in inner.items()}
            end = start + size * (count or 1)
            largest, alignment = max(largest, end), max(alignment, align)
        self.take("}")
        return -(-largest // alignment) * alignment, alignment, members

    def type(self):
        """(size, alignment, byte order, name of a structure, members of an anonymous one)."""
        word = self.take()
        if word in ("struct", "union") and self.tokens[0] == "{":
            self.take("{")
            size, alignment, members = self.body(word == "union")
            return size, alignment, "", "", members
        if word == "struct":
            name = self.take()
            if name not in self.structs:
                raise ValueError(f"struct {name} is not known")
            return self.structs[name].size, self.alignments[name], "", name, None
        if word not in TYPES:
            raise ValueError(f"{word} is no type of a member")
        size, order = TYPES[word]
        return size, size, order, "", None

    @staticmethod
    def aligned(attribute):
        found = ALIGNED.fullmatch(attribute)
        if not found:
            raise ValueError(f"{attribute} is not known")
        return int(found[1])


def structs(headers=None):
    """Name -> Struct."""
    return Parser(text() if headers is None else headers).structs


def checks(headers=None):
    """What the headers assert: ({structure: size}, {(structure, member): offset})."""
    headers = text() if headers is None else headers
    known = macros(headers)
    return ({name: value(size, known) for name, size in ASSERT_SIZE.findall(headers)},
            {(name, member): value(offset, known) for name, member, offset in ASSERT_OFFSET.findall(headers)})


def enumerators(headers=None):
    """Name -> value, of those that stand in an enum with their number."""
    headers = text() if headers is None else headers
    return {name: int(number, 0) for name, number in ENUMERATOR.findall(headers)}


def masks(headers=None):
    """Name -> mask, of the macros that select bits: HGHCA_MASK(), a shifted number, or a name that ends with _MASK."""
    known = macros(text() if headers is None else headers)
    return {name: value(expression, known) for name, expression in known.items()
            if re.fullmatch(r"HGHCA_MASK\(\d+, \d+\)|\(\w+ << \d+\)", expression) or name.endswith("_MASK")}
