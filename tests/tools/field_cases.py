# SPDX-License-Identifier: GPL-2.0-or-later
"""The structures of the headers are laid out as the headers assert."""

from tool import same

from hghca_lib import fields

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
    structs, (sizes, offsets) = fields.structs(), fields.checks()
    same(sizes, {name: struct.size for name, struct in structs.items()}, "sizes")
    assert len(structs) > 30 and len(offsets) > 80, f"{len(structs)} structures and {len(offsets)} offsets were found"
    same(offsets, {(name, path): structs[name].members[path].offset for name, path in offsets}, "offsets")
