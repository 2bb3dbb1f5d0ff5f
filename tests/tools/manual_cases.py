# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual page of the direct verbs says what their header says."""

import re

from tool import same

from hghca_lib import repo

PAGE, HEADER = "providers/hghca/man/hghcadv.7.md", "providers/hghca/hghcadv.h"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CODE = re.compile(r"^```c\n(.*?)^```", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"^(?:static inline )?([a-z][^;{}()#]*\bhghcadv_\w+\([^{};]*\))\s*[;{]", re.MULTILINE)
STRUCTURE = re.compile(r"^struct (hghcadv_\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
# Programs get at its members by functions.
OPAQUE = {"hghcadv_qp_ex"}


def declared(text):
    """The functions and the structures of some C: prototypes, and {name: members}, both without comments and layout."""
    text = COMMENT.sub("", text)
    functions = {" ".join(found.split()).replace("* ", "*") for found in FUNCTION.findall(text)}
    return functions, {name: " ".join(members.split()) for name, members in STRUCTURE.findall(text)}


def page_of(text):
    return declared("\n".join(CODE.findall(text)))


def test_manual_page():
    """The manual page has each function of the header as it is declared, each structure, and each flag"""
    page, header = repo.path(PAGE).read_text(), repo.path(HEADER).read_text()
    functions, structures = declared(header)
    assert len(functions) >= 11, functions
    same(page_of(page)[0], functions, "functions")
    same(page_of(page)[1], {name: members for name, members in structures.items() if name not in OPAQUE}, "structures")
    flags = set(re.findall(r"^\t(HGHCADV_\w+) = ", header, re.MULTILINE))
    same(flags - set(re.findall(r"HGHCADV_\w+", page)), set(), "flags that the page does not name")


def test_manual_page_compared():
    """A parameter, a member and a function that the manual page has otherwise are noticed"""
    page = repo.path(PAGE).read_text()
    right = page_of(page)
    for old, new in (("uint32_t *filled,", "uint64_t *filled,"), ("\tuint8_t key_size;\n", ""),
                     ("uint64_t hghcadv_crc64(const void *data, size_t length);\n", "")):
        assert page.count(old) == 1, old
        assert page_of(page.replace(old, new)) != right, f"{old} is not compared"
