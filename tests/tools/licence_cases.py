# SPDX-License-Identifier: GPL-2.0-or-later
"""Each file says its licence, and each licence is there."""

import fnmatch
import os
import re
from pathlib import Path

from tool import same

from hghca_lib import repo

LICENSES = repo.path("LICENSES")
LINE = re.compile(r"SPDX-License-Identifier: ([\w.+() -]+?)(?: \*/| -->)?$", re.MULTILINE)
# It stands in the first lines, behind what names an interpreter.
HEAD_LINES = 3
# What has no line, as a pattern of paths, and why.
WITHOUT = {
    "LICENSES/*": "the texts themselves",
    "*.json": "JSON has no comments",
    "VERSION": "one word, for programs to read",
    "tests/fuzz/corpus/*.txt": "bytes that a fuzzer has found, and writes again",
    "tools/kernel/*.config": "settings of the kernel, as its own fragments have none",
}


def ignored(name):
    """Whether .gitignore names it, or git itself: no source, but what a build leaves in the tree."""
    lines = repo.path(".gitignore").read_text().splitlines()
    return name == ".git" or any(fnmatch.fnmatch(name, line.rstrip("/")) for line in lines)


def files():
    """The paths of all sources, relative to the checkout."""
    found = []
    for folder, folders, names in os.walk(repo.ROOT):
        folders[:] = [name for name in folders if not ignored(name)]
        found += [Path(folder, name).relative_to(repo.ROOT) for name in names if not ignored(name)]
    return sorted(found)


def identifiers(text):
    """The licences that a text names in its first lines, without `OR` and the like; none: it has no line."""
    found = LINE.search("\n".join(text.splitlines()[:HEAD_LINES]))
    words = re.findall(r"[\w.+-]+", found[1]) if found else []
    return [word for word in words if word not in ("OR", "AND", "WITH")]


def test_lines():
    """Each source file says under which licences it is"""
    paths = [path for path in files() if not any(fnmatch.fnmatch(str(path), pattern) for pattern in WITHOUT)]
    assert len(paths) > 300, f"only {len(paths)} files were found"
    same([str(path) for path in paths if not identifiers((repo.ROOT / path).read_text())], [], "files without a line")


def test_texts():
    """The text of each licence that is named is in LICENSES, and no other"""
    named = {name for path in files() if path.parts[0] != "LICENSES"
             for name in identifiers((repo.ROOT / path).read_text(errors="replace"))}
    same(sorted(named), sorted(path.stem for path in LICENSES.glob("*.txt")), "licences")


def test_exceptions():
    """Each kind of file that needs no licence exists"""
    paths = [str(path) for path in files()]
    same([pattern for pattern in WITHOUT if not fnmatch.filter(paths, pattern)], [], "patterns without files")


def test_found():
    """A file without a line, and a licence without a text, are found"""
    same(identifiers("#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later\n"), ["GPL-2.0-or-later"])
    same(identifiers("/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */\n"),
         ["GPL-2.0", "Linux-syscall-note", "Linux-OpenIB"])
    same(identifiers("\n\n\n// SPDX-License-Identifier: GPL-2.0\n"), [])
    same(identifiers("int main(void);\n"), [])
