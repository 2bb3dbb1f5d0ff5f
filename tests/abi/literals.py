# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of a document, and what the compiler says of the header's names for them.

A row has the document's literal and the header's name. Where a field stands follows from both sides separately,
as a list of (byte, bit) from its lowest bit to its highest: on the document's side from the word's offset, the bits and
the table's byte order, on the header's side from the member's offset, size and type, and from the mask.
"""

import dataclasses
import re

LITTLE, BIG = "little-endian", "big-endian"
BIT_RANGE = re.compile(r"(\d+):(\d+)")
SLICE = re.compile(r"(.*)\[(\d+:\d+)\]")
# Each type of fixed byte order is made one of its own, so that the compiler can tell the order of a member.
HEAD = """
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>
typedef struct { __u16 value; } little16;
typedef struct { __u32 value; } little32;
typedef struct { __u64 value; } little64;
typedef struct { __u16 value; } big16;
typedef struct { __u32 value; } big32;
typedef struct { __u64 value; } big64;
#define __le16 little16
#define __le32 little32
#define __le64 little64
#define __be16 big16
#define __be32 big32
#define __be64 big64
#include <hghca_wire.h>
#include <ernic_hw.h>
/* The columns of the tables of registers in ernic_hw.h. */
enum { RW, RO, W1C, OVERRIDE, STOPPED };
struct ernic_row { unsigned long long bits; int access, personality, first; };
#define GLOBAL_ROW(name, ...) struct ernic_row name;
#define GLOBAL_WORDS(name, offset, access, bits, who) .name = { bits, access, ERNIC_PERSONALITY_##who, 1 },
#define QP_WORDS(name, offset, access, bits, who, first) .name = { bits, access, ERNIC_PERSONALITY_##who, first },
#define PD_WORDS(name, offset, bits) .name = { bits, RW, ERNIC_PERSONALITY_ERNIC, 1 },
const struct {
	ERNIC_GLOBAL_REGISTERS(GLOBAL_ROW) ERNIC_QP_REGISTERS(GLOBAL_ROW) ERNIC_PD_REGISTERS(GLOBAL_ROW)
} ernic_rows = {
	ERNIC_GLOBAL_REGISTERS(GLOBAL_WORDS) ERNIC_QP_REGISTERS(QP_WORDS) ERNIC_PD_REGISTERS(PD_WORDS)
};
/* A column of a table of names: bit or code, and precedence. */
#define SYNDROME_ROW(name, bit, precedence, text) int name;
#define SYNDROME_WORDS(name, bit, precedence, text) .name = precedence,
const struct { ERNIC_SYNDROMES(SYNDROME_ROW) } ernic_precedence = { ERNIC_SYNDROMES(SYNDROME_WORDS) };
#define OPCODE_ROW(name, value, who) int name;
#define OPCODE_WORDS(name, value, who) .name = ERNIC_PERSONALITY_##who,
const struct { ERNIC_OPCODES(OPCODE_ROW) } ernic_opcode_of = { ERNIC_OPCODES(OPCODE_WORDS) };
#define ORDER(member) _Generic((member), \\
	little16: "little-endian", little32: "little-endian", little64: "little-endian", \\
	big16: "big-endian", big32: "big-endian", big64: "big-endian", \\
	__u8: "big-endian", __u8 *: "big-endian", default: "native")
#define MEMBER(row, type, member, mask) printf("%d %s %zu %zu %llu\\n", row, ORDER(((type *)0)->member), \\
	offsetof(type, member), sizeof(((type *)0)->member), (unsigned long long)(mask))
#define REGISTER(row, offset, mask) printf("%d register %llu 4 %llu\\n", row, \\
	(unsigned long long)(offset), (unsigned long long)(mask))
#define VALUE(row, value) printf("%d %llu\\n", row, (unsigned long long)(value))
"""


@dataclasses.dataclass(frozen=True)
class Field:
    """Bits of a 32-bit word.

    offset:  of the word, in bytes.
    bits:    "HIGH:LOW", 31 the most significant.
    place:   of a structure's table the member, "member[HIGH:LOW]" when the field is a part of it;
             otherwise the offset of a register, a constant expression.
    mask:    the macro that selects the field in the member or the register, "" for all of it.
    order:   byte order of this word, "" for the table's.
    reading: why the literal is not what the document says, or not all that it says.
    """
    name: str
    offset: int
    bits: str
    place: str
    mask: str = ""
    order: str = ""
    reading: str = ""


@dataclasses.dataclass(frozen=True)
class Value:
    """A number, and the constant expression of the header that has it."""
    name: str
    value: int
    expression: str
    reading: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of one table.

    number: "table 3-1-5" or "section 4.2".
    order:  byte order of its words.
    struct: "struct NAME", whose members the fields are; "" for registers.
    """
    number: str
    title: str
    rows: tuple
    order: str = LITTLE
    struct: str = ""


def check(report, compiler, document, tables):
    """A result for each table, and one that each literal matters. Returns the expressions that have one."""
    found = measure(compiler, tables)
    spoilt = []
    for table in tables:
        measured, error = found[table.number]
        pairs = list(zip(table.rows, measured))
        notes = [error, *(difference(table, row, words) for row, words in pairs)]
        report.result(not any(notes) and len(pairs) == len(table.rows),
                      f"the header follows {document}, {table.number}: {table.title}, {rows_of(table)}",
                      "\n".join(filter(None, notes)))
        if not any(notes):
            spoilt += [(table, other, words) for row, words in pairs for other in spoil(table, row)]
    missed = [f"{table.number}: {other}" for table, other, words in spoilt if not difference(table, other, words)]
    report.result(spoilt and not missed, f"each literal of {document} that is spoilt is noticed", "\n".join(missed))
    return {row.expression for table in tables for row in table.rows if isinstance(row, Value)}


def rows_of(table):
    return f"{len(table.rows)} row{'s' * (len(table.rows) != 1)}"


def check_coverage(report, compiler, expressions, enums):
    """Each enumerator of these enums has a literal in some table."""
    text = compiler.compile("C11 by gcc", "#include <hghca_hw.h>\n#include <ernic_hw.h>\n", "-E", "-P").stdout
    for enum in enums:
        body = re.search(rf"^enum {enum} \{{(.*?)\}}", text, re.MULTILINE | re.DOTALL).group(1)
        names = re.findall(r"(\w+)[^,]*", body)
        lacking = [name for name in names if name not in expressions]
        report.result(names and not lacking, f"each enumerator of enum {enum} has a literal, {len(names)} of them",
                      "\n".join(f"{name}: in no table" for name in lacking))


def measure(compiler, tables):
    """{number: ([what the compiler says of each row], errors)}; [] where the header lacks a name."""
    # One program is ten times as fast as one a table, which only shows where an error belongs.
    lines, error = run(compiler, tables)
    if len(tables) > 1 and error:
        return {number: result for table in tables for number, result in measure(compiler, [table]).items()}
    found = {}
    for table in tables:
        found[table.number] = lines[:len(table.rows)], error
        lines = lines[len(table.rows):]
    return found


def run(compiler, tables):
    """([the words that the program prints for each row], "") or ([], the compiler's errors)."""
    prints = [statement(row, table, index) for table in tables for index, row in enumerate(table.rows)]
    text = "\n".join([HEAD, "int main(void) {", *prints, "return 0; }", ""])
    done = compiler.compile("C11 by gcc", text, "-o", "/mnt/job/program")
    if done.returncode:
        # Each use of a name that the header lacks is an error of its own.
        return [], "\n".join(dict.fromkeys(re.findall(r"error: (.*)", done.stderr))) or done.stderr
    return [line.split()[1:] for line in compiler.run("/mnt/job/program").stdout.splitlines()], ""


def statement(row, table, index):
    if isinstance(row, Value):
        return f"VALUE({index}, {row.expression});"
    place, _ = split(row.place)
    if table.struct:
        return f"MEMBER({index}, {table.struct}, {place}, {row.mask or 0});"
    return f"REGISTER({index}, {place}, {row.mask or 0});"


def difference(table, row, measured):
    """"" or what document and header say of a row."""
    if isinstance(row, Value):
        value = int(measured[0])
        said, header, same = f"{row.value:#x}", f"{row.expression} = {value:#x}", value == row.value
    else:
        order = row.order or table.order
        said = f"{row.offset:02X}h {row.bits} {order}"
        header, same = describe(row, *measured), in_document(row, order) == in_header(row, order, *measured)
    if same:
        return ""
    return f"{row.name}: document {said}; header {header}" + (f" (reading: {row.reading})" if row.reading else "")


def in_document(row, order):
    """The field's (byte, bit), lowest bit first."""
    high, low = limits(row.bits)
    return [(row.offset + (bit // 8 if order == LITTLE else 3 - bit // 8), bit % 8) for bit in range(low, high + 1)]


def in_header(row, table_order, order, offset, size, mask):
    """The (byte, bit) of what the header names, lowest bit first."""
    offset, size, mask = int(offset), int(size), int(mask)
    # A register is accessed as a word: its byte order is that of the bus.
    order = table_order if order == "register" else order
    _, part = split(row.place)
    high, low = limits(part) if part else (8 * size - 1, 0)
    bits = [bit for bit in range(low, high + 1) if not row.mask or mask >> bit & 1]
    # A mask that selects bits beyond the member is wrong, whatever it selects in it.
    bits += [bit for bit in range(8 * size, mask.bit_length()) if mask >> bit & 1]
    if order not in (LITTLE, BIG):
        return []
    return [(offset + (bit // 8 if order == LITTLE else size - 1 - bit // 8), bit % 8) for bit in bits]


def describe(row, order, offset, size, mask):
    text = f"{row.place} at {int(offset):02X}h, {size} bytes"
    text += f" {order}" if order != "register" and int(size) > 1 else ""
    return text + (f", {row.mask} = {int(mask):#x}" if row.mask else "")


def spoil(table, row):
    """The row with another literal, in each way that there is."""
    if isinstance(row, Value):
        return [dataclasses.replace(row, value=row.value + 1)]
    high, low = limits(row.bits)
    order = row.order or table.order
    changes = [{"offset": row.offset + 4}]
    if high < 31:
        changes.append({"bits": f"{high + 1}:{low}"})
    if high > low:
        changes.append({"bits": f"{high}:{low + 1}"})
    if table.struct:
        changes.append({"order": BIG if order == LITTLE else LITTLE})
    return [dataclasses.replace(row, **change) for change in changes]


def split(place):
    """("member", "63:32") of "member[63:32]", ("member", "") of "member"."""
    part = SLICE.fullmatch(place)
    return (part.group(1), part.group(2)) if part else (place, "")


def limits(bits):
    """(high, low) of "high:low"."""
    high, low = map(int, BIT_RANGE.fullmatch(bits).groups())
    return high, low


def mask(bits):
    """The bits "high:low" of a number, as a number."""
    high, low = limits(bits)
    return (1 << high + 1) - (1 << low)
