# SPDX-License-Identifier: GPL-2.0-or-later
"""The fields that the interface document names stand where the headers have them, and the document names them all."""

import re
import sys
from typing import NamedTuple

from tool import same

from hghca_lib import fields, interface, repo

sys.path.insert(0, str(repo.path("tests/abi")))
import jingzhao  # noqa: E402

# What stands above the table of a structure: its name, its size and its byte order.
CAPTION = re.compile(r"^``struct (\w+)``, (\d+) bytes(?:, (\w+-endian))?: (?:.+\n)+\n\Z", re.MULTILINE)
STRUCT = re.compile(r"``struct\s+(\w+)``")
# A table of the JingZhao document, as captions and tests/abi/jingzhao.py have it.
SEED = re.compile(r"\bthe seed's\s+table (\d-\d-\d+)")
SEED_TABLE = re.compile(r"\d-\d-\d+")
# Bits that a table of readings has: "31:28", "2^(4:0)", "bit 7".
BITS = re.compile(r"(?<![\d:])(\d+:\d+)(?![\d:])|\bbit (\d+)\b")
# Values of a field, in its meaning: "0 RST, 1 INIT".
VALUES = re.compile(r"\b(\d+) ([A-Z][A-Z_]+)\b")
# Of section 5's table: "sq_head 23:8", "fence 5".
DOORBELL_BITS = re.compile(r"(\w+) (\d+(?::\d+)?)(?=[ ,]|$)")
# A sample with all that the parser knows; where its members stand has been counted.
SAMPLE = """
#define HGHCA_SAMPLES (HGHCA_SAMPLE_SIZE / 4)
#define HGHCA_SAMPLE_SIZE 0x10U
#define HGHCA_SAMPLE_BIT (1U << 9)
#define HGHCA_SAMPLE_HIGH HGHCA_MASK(31, 28)
#define HGHCA_SAMPLE_MASK (~0xfffULL)
struct inner {
	__le32	first;
	__u8	last;	/* padded to a multiple of 4 */
};
struct outer {
	__u8	a;
	__be16	b;
	__le64	c __attribute__((packed, aligned(4)));
	struct inner d[2];
	union {
		__be32 raw[HGHCA_SAMPLES];
		struct {
			__be16	rsvd00;
			__be16	e;
		} one;
	} f;
	__be64	g;
};
HGHCA_ASSERT_SIZE(outer, 3 * HGHCA_SAMPLE_SIZE + 8);
HGHCA_ASSERT_OFFSET(outer, f.one.e, 0x1e);
"""


# The headers of RSNIC alone, which rsnic_cases.py compares with a page of their own.
OF_RSNIC = ("rsnic_caps.h", "segment.h")


def headers():
    """The headers of the interface document, one behind the other, without comments."""
    paths = sorted(repo.path("include/hghca").glob("*.h"))
    return fields.without_comments("\n".join(path.read_text() for path in paths if path.name not in OF_RSNIC))


class Row(NamedTuple):
    """A row of a structure's table, as it is written."""

    offset: str
    bits: str
    field: str
    macro: str
    meaning: str


class Layout(NamedTuple):
    """The table of a structure, with what the caption says."""

    struct: str
    size: int
    order: str
    seed: str
    rows: list


class Header:
    """What the headers have."""

    def __init__(self):
        text = headers()
        self.structs = fields.structs(text)
        self.masks = fields.masks(text)
        self.macros = fields.macros(text)

    def value(self, name):
        """The value of a macro, or None."""
        return fields.value(name, self.macros) if name in self.macros else None


class Document:
    """The tables of fields in the interface document."""

    def __init__(self):
        self.text = interface.document()
        self.tables = interface.tables(self.text)
        self.layouts = [layout(self.text[:table.start], table) for table in self.tables
                        if table.head[:3] == ["offset", "bits", "field"]]

    def of(self, *head):
        """The rows of all tables whose first columns have these headings."""
        return [row for table in self.tables if table.head[:len(head)] == list(head) for row in table.rows]

    def readings(self):
        """(structure, field, text) of the tables that say what fields mean, without their offsets."""
        found = []
        for table in self.tables:
            if table.head[0] == "field":
                struct = STRUCT.findall(self.text[:table.start])[-1]
                found += [(struct, name, " ".join(text)) for cell, *text in table.rows for name in names(cell)]
        return found


def layout(above, table):
    """The Layout of a table; `above` is the text before it."""
    caption = CAPTION.search(above)
    assert caption, f"the table of {table.rows[0]} has no structure above it"
    rows = [Row(**{"macro": "", **dict(zip(table.head, row))}) for row in table.rows]
    return Layout(caption[1], int(caption[2]), caption[3] or "", "".join(SEED.findall(caption[0])), rows)


def names(cell):
    """The fields of a cell: "a, b" are two, "a/b_size" are a_size and b_size, "flags: A" is a part of flags."""
    found = []
    for name in cell.replace("**ext**", "").split(","):
        *firsts, last = name.strip().split("/")
        found += [first + last[last.index("_"):] for first in firsts] + [last]
    return found


def bits_of(mask):
    """"HIGH:LOW" or "BIT" of a mask, "" when its bits are not a run."""
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
    if not mask or mask != fields.mask(high, low):
        return ""
    return str(high) if high == low else f"{high}:{low}"


def row_of(path, member):
    """(offset, bits, field) as the row of a member has them."""
    offset = f"{member.offset:02X}h"
    if member.struct or member.size == 1 and member.count:
        size = f"{member.size * (member.count or 1)} bytes"
        return offset, size, f"{path}[{member.count}]" if member.struct and member.count else path
    return offset, f"{8 * member.size - 1}:0", f"{path}[{member.count}]" if member.count else path


def wrong_row(row, path, member, mask, order):
    """"" or what is wrong with a row: of a member, or with a macro of a part of it."""
    if row.macro:
        if mask is None:
            return f"{row.macro} is in no header"
        wanted = f"{member.offset:02X}h", bits_of(mask)
        if mask >> 8 * member.size:
            return f"{row.macro} selects bits beyond {path}"
        return "" if (row.offset, row.bits) == wanted else f"{row.macro} is at {wanted}"
    if row[:3] != row_of(path, member):
        return f"{path} is {row_of(path, member)}"
    wanted = fields.BIG if "in wire order" in row.meaning else order
    return "" if member.order in ("", wanted) else f"{path} is {member.order}"


def wrong(layout, header):
    """What is wrong with the table of a structure, a line each."""
    found = header.structs.get(layout.struct)
    if not found:
        return [f"struct {layout.struct} is in no header"]
    told = [] if layout.size == found.size else [f"struct {layout.struct} has {found.size} bytes"]
    if not layout.order and any(member.order for member in found.members.values()):
        told.append(f"struct {layout.struct} has a byte order")
    named, path = [], ""
    for row in layout.rows:
        if not row.macro:
            path = row.field.split("[")[0]
            named.append(path)
        member = found.members.get(path)
        if not member or fields.is_reserved(path):
            told.append(f"struct {layout.struct} has no field {path}")
            continue
        error = wrong_row(row, path, member, header.value(row.macro), layout.order)
        told += [f"struct {layout.struct}, {row.offset} {row.bits} {row.field}: {error}"] if error else []
    told += [f"struct {layout.struct}: {path} is named twice" for path in sorted(set(named)) if named.count(path) > 1]
    told += [f"struct {layout.struct}: {path} is in no row" for path in found.members
             if path not in named and not fields.is_reserved(path)]
    return told


def seed_tables():
    """Structure -> numbers of the tables of the JingZhao document that are of it."""
    found = {}
    for table in jingzhao.TABLES:
        for struct in re.findall(r"struct (hghca_\w+)", table.struct):
            found.setdefault(struct, []).extend(SEED_TABLE.findall(table.number))
    return found


def wrong_seeds(layouts):
    """The structures whose caption names another table of the JingZhao document than tests/abi, or wrongly none."""
    known = seed_tables()
    return [layout.struct for layout in layouts if layout.seed not in known.get(layout.struct, [""])]


def wrong_values(meaning, known):
    """Whether the numbers before names in a meaning are not those of enumerators that begin alike."""
    wanted = [(name, int(number)) for number, name in VALUES.findall(meaning)]
    starts = {name.removesuffix(wanted[0][0]) for name in known if name.endswith(f"_{wanted[0][0]}")}
    return not any(all(known.get(f"{start}{name}") == number for name, number in wanted) for start in starts)


def unnamed_macros(document, masks):
    """Those of the macros that no row names."""
    named = {row.macro for layout in document.layouts for row in layout.rows}
    named |= {row[3] for row in document.of("word")}
    named |= {name for row in document.of("offset", "bits", "access") for name in row[4].split(", ")}
    return sorted(masks - named)


def without_meaning(layouts, readings):
    """The fields without a meaning that have no parts, and that no table of readings has."""
    said = {(struct, name) for struct, name, _ in readings}
    return [f"struct {layout.struct}: {row.field}" for layout in layouts for row in layout.rows
            if not row.macro and not row.meaning and not parts(layout)[row.field.split("[")[0]]
            and (layout.struct, row.field) not in said]


def doorbells(document):
    """({doorbell: [(part, bits)]}) of the table of UAR pages, and the same of the table of words."""
    words = {}
    for where, bits, name, *_ in document.of("word"):
        words.setdefault(where.partition(",")[0].replace(" doorbell", ""), []).append((name, bits))
    pages = {name.replace("**ext**", "").strip(): DOORBELL_BITS.findall(text)
             for _, name, text in document.of("offset", "name", "layout")}
    return pages, {name: words[name] for name in words if name in pages}


def parts(layout):
    """Field -> part -> bits, as the rows with a macro have them; fields without parts, too."""
    found, path = {}, ""
    for row in layout.rows:
        if row.macro:
            found[path][row.field] = row.bits
        else:
            path = row.field.split("[")[0]
            found[path] = {}
    return found


def wrong_reading(reading, known):
    """"" or what is wrong with a row of a table of readings; `known` is parts() of its structure."""
    struct, name, text = reading
    field, _, part = name.partition(": ")
    all_parts = {part: bits for each in known.values() for part, bits in each.items()}
    if part and part not in known.get(field, {}) or field not in known and field not in all_parts:
        return f"struct {struct} has no field {name}"
    said = {range_ or bit for range_, bit in BITS.findall(text)}
    unknown = sorted(said - set(known.get(field, {}).values()))
    return f"struct {struct}: {name} has no part with the bits {', '.join(unknown)}" if unknown else ""


def other_bits(bits):
    """Other bits than these: the first number is one more."""
    return re.sub(r"\d+", lambda number: str(int(number[0]) + 1), bits, count=1)


def spoilt(layout):
    """The layout with one thing wrong, in each way there is: (what, Layout)."""
    other = {fields.BIG: fields.LITTLE, fields.LITTLE: fields.BIG}
    yield "size", layout._replace(size=layout.size + 4)
    if layout.order:
        yield "byte order left out", layout._replace(order="")
    if any(row.bits in ("15:0", "31:0", "63:0") and not row.macro and "wire order" not in row.meaning
           for row in layout.rows):
        yield "byte order", layout._replace(order=other[layout.order])
    for i, row in enumerate(layout.rows):
        changes = {"offset": f"{int(row.offset[:-1], 16) + 1:02X}h", "bits": other_bits(row.bits),
                   **({"macro": f"{row.macro}_"} if row.macro else {"field": f"{row.field}x"})}
        for column, cell in changes.items():
            yield (f"{row.field}: {column}",
                   layout._replace(rows=[*layout.rows[:i], row._replace(**{column: cell}), *layout.rows[i + 1:]]))
        if not row.macro:
            yield f"{row.field} left out", layout._replace(rows=[*layout.rows[:i], *layout.rows[i + 1:]])
            yield f"{row.field} twice", layout._replace(rows=[*layout.rows, row])


def wrong_words(rows, header):
    """What is wrong with the rows (where, bits, macro) of words outside of structures."""
    found = [(f"{where}, {bits}: {macro}", bits, bits_of(header.value(macro) or 0)) for where, bits, macro in rows]
    return [f"{row} is {header_bits or 'no mask'}" for row, bits, header_bits in found if bits != header_bits]


def wrong_register(row, header):
    """"" or what is wrong with a row of the HCR's table."""
    offset, bits, _, field, macros = row
    register, _, mask = macros.partition(", ")
    if header.value(register) is None:
        return f"{register} is in no header"
    wanted = f"{header.value(register):02X}h", bits_of(header.value(mask) or 0) if mask else "31:0"
    return "" if (offset, bits) == wanted else f"{field} is {wanted}"


def test_parser():
    """The parser lays out structures, and evaluates macros, as a compiler does"""
    sample = fields.without_comments(SAMPLE)
    same(fields.structs(sample), {
        "inner": fields.Struct(8, {"first": fields.Member(0, 4, 0, fields.LITTLE, ""),
                                   "last": fields.Member(4, 1, 0, "", "")}),
        "outer": fields.Struct(56, {"a": fields.Member(0, 1, 0, "", ""),
                                    "b": fields.Member(2, 2, 0, fields.BIG, ""),
                                    "c": fields.Member(4, 8, 0, fields.LITTLE, ""),
                                    "d": fields.Member(12, 8, 2, "", "inner"),
                                    "f.raw": fields.Member(28, 4, 4, fields.BIG, ""),
                                    "f.one.rsvd00": fields.Member(28, 2, 0, fields.BIG, ""),
                                    "f.one.e": fields.Member(30, 2, 0, fields.BIG, ""),
                                    "g": fields.Member(48, 8, 0, fields.BIG, "")})}, "structures")
    same(fields.checks(sample), ({"outer": 56}, {("outer", "f.one.e"): 30}), "assertions")
    same(fields.masks(sample), {"HGHCA_SAMPLE_BIT": 0x200, "HGHCA_SAMPLE_HIGH": 0xf0000000,
                                "HGHCA_SAMPLE_MASK": 0xfffffffffffff000}, "masks")


def test_parser_refuses():
    """The parser refuses what it does not know, rather than to leave it out"""
    for member in ("int a;", "__be32 a : 4;", "__be32 a, b;", "__be32 *a;", "struct missing a;", "__u8 a[HGHCA_NONE];",
                   "__u8 a[f()];", "__be32 a __attribute__((packed));", "struct { __u8 b; } a[2];", "__u8 a[2][2];"):
        try:
            found = fields.structs(f"struct sample {{\n\t{member}\n}};\n")
        except ValueError:
            continue
        raise AssertionError(f"{member} has become {found}")


def test_assertions():
    """The parser finds the sizes and offsets that the headers assert, and each structure asserts its size"""
    structs, (sizes, offsets) = fields.structs(headers()), fields.checks(headers())
    same(sizes, {name: struct.size for name, struct in structs.items()}, "sizes")
    assert len(structs) > 30 and len(offsets) > 80, f"{len(structs)} structures and {len(offsets)} offsets were found"
    same(offsets, {(name, path): structs[name].members[path].offset for name, path in offsets}, "offsets")


def test_layouts():
    """The document has a table of each structure of the headers, with each of its fields, their bits and macros"""
    header, document = Header(), Document()
    same([line for layout in document.layouts for line in wrong(layout, header)], [], "rows that are wrong")
    same(sorted(layout.struct for layout in document.layouts), sorted(header.structs), "structures with a table")


def test_layouts_spoilt():
    """A row or a caption of a structure's table that is spoilt is noticed"""
    header = Header()
    variants = [(layout.struct, what, other) for layout in Document().layouts for what, other in spoilt(layout)]
    assert len(variants) > 1000, f"only {len(variants)} variants"
    same([f"{struct}: {what}" for struct, what, other in variants if not wrong(other, header)], [], "not noticed")


def test_seed():
    """The table of a structure names the table of the JingZhao document that tests/abi has for it"""
    layouts = Document().layouts
    same(wrong_seeds(layouts), [], "structures")
    same(wrong_seeds([layout._replace(seed="3-9-9") for layout in layouts]), [layout.struct for layout in layouts],
         "structures with another table")
    same(len(wrong_seeds([layout._replace(seed="") for layout in layouts])),
         len(seed_tables().keys() & {layout.struct for layout in layouts}), "structures without a table")


def test_macros():
    """Each macro of the headers that selects bits is in a row of some table"""
    document, masks = Document(), fields.masks(headers()).keys()
    assert len(masks) > 140, f"only {len(masks)} macros were found"
    same(unnamed_macros(document, masks), [], "macros in no row")
    same(unnamed_macros(document, masks | {"HGHCA_OF_NO_ROW"}), ["HGHCA_OF_NO_ROW"], "macros in no row")


def test_values():
    """The values that the meaning of a field names are those of the headers"""
    known = fields.enumerators(headers())
    meanings = [row.meaning for layout in Document().layouts for row in layout.rows if VALUES.search(row.meaning)]
    same(len(meanings), 4, "meanings with values")
    same([meaning for meaning in meanings if wrong_values(meaning, known)], [], "meanings that are wrong")
    other = [VALUES.sub(lambda pair: f"{int(pair[1]) + 9} {pair[2]}", meaning, count=1) for meaning in meanings]
    same([meaning for meaning in other if not wrong_values(meaning, known)], [], "meanings that may be spoilt")


def test_words():
    """The bits of words outside of structures, and of the HCR, are those of the headers' macros"""
    header, document = Header(), Document()
    words = [(where, bits, macro) for where, bits, _, macro, _ in document.of("word")]
    assert len(words) > 10, f"only {len(words)} rows were found"
    same(wrong_words(words, header), [], "rows that are wrong")
    same([word for word in words if not wrong_words([(word[0], other_bits(word[1]), word[2])], header)
          or not wrong_words([(*word[:2], f"{word[2]}_")], header)], [], "rows that may be spoilt")
    registers = document.of("offset", "bits", "access")
    assert len(registers) > 10, f"only {len(registers)} rows were found"
    same([row for row in registers if wrong_register(row, header)], [], "rows of the HCR that are wrong")
    same([row for row in registers if not wrong_register(["1Ch", *row[1:]], header)
          or not wrong_register([row[0], other_bits(row[1]), *row[2:]], header)], [], "rows that may be spoilt")


def test_doorbells():
    """The table of UAR pages has the bits of doorbells that the table of words has"""
    pages, words = doorbells(Document())
    same({name: len(parts) for name, parts in pages.items()}, {"SQ": 6, "CQ arm": 2, "EQ arm": 2}, "bits of doorbells")
    same(pages, words, "bits")


def test_readings():
    """The tables that say what fields mean name fields of their structure, and bits of their parts"""
    document = Document()
    known = {layout.struct: parts(layout) for layout in document.layouts}
    readings = document.readings()
    assert len(readings) > 60, f"only {len(readings)} rows were found"
    same([wrong for wrong in (wrong_reading(reading, known[reading[0]]) for reading in readings) if wrong], [],
         "rows that are wrong")
    same([name for struct, name, text in readings if not wrong_reading((struct, f"{name}x", text), known[struct])], [],
         "names that may be spoilt")
    with_bits = [reading for reading in readings if BITS.search(reading[2])]
    assert len(with_bits) >= 6, f"only {len(with_bits)} rows with bits were found"
    same([name for struct, name, text in with_bits
          if not wrong_reading((struct, name, BITS.sub("30:29", text, count=1)), known[struct])], [],
         "bits that may be spoilt")


def test_attributes():
    """The document has each bit of opt_param_mask, and the fields that it names for an attribute exist"""
    document = Document()
    rows = document.of("attribute", "bit", "fields")
    same({name: int(bit) for name, bit, _ in rows}, interface.attributes(), "attributes")
    known = next(parts(layout) for layout in document.layouts if layout.struct == "hghca_qpc")
    carried = [("hghca_qpc", name, "") for *_, cell in rows if cell != "none" for name in names(cell)]
    assert len(carried) > 20, f"only {len(carried)} fields were found"
    same([name for _, name, _ in carried if wrong_reading(("hghca_qpc", name, ""), known)], [], "fields that are wrong")
    same([name for struct, name, text in carried if not wrong_reading((struct, f"{name}x", text), known)], [],
         "fields that may be spoilt")


def test_meanings():
    """A field without a meaning has parts, or is in a table that says what fields mean"""
    document = Document()
    readings = document.readings()
    same(without_meaning(document.layouts, readings), [], "fields without a meaning")
    plain = [i for i, (struct, name, _) in enumerate(readings) if struct == "hghca_congestion" and ":" not in name]
    assert len(plain) > 10, f"only {len(plain)} fields were found"
    same([readings[i] for i in plain if not without_meaning(document.layouts, readings[:i] + readings[i + 1:])], [],
         "fields that may be left out")


def test_names():
    """The fields of a cell are read as they stand"""
    same({cell: names(cell) for cell in ("usr_page", "limits **ext**", "a, b", "snd/rcv_wqe_len", "flags: PFC_RX")},
         {"usr_page": ["usr_page"], "limits **ext**": ["limits"], "a, b": ["a", "b"],
          "snd/rcv_wqe_len": ["snd_wqe_len", "rcv_wqe_len"], "flags: PFC_RX": ["flags: PFC_RX"]}, "names")
    same({mask: bits_of(mask) for mask in (0, 1, 0x80, 0x7f, 0xa0, 0xfffffffffffff000)},
         {0: "", 1: "0", 0x80: "7", 0x7f: "6:0", 0xa0: "", 0xfffffffffffff000: "63:12"}, "bits")
