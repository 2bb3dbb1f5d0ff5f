# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections of the interface document, and names of the headers, that are cited exist."""

import re
from pathlib import Path

from tool import same

from hghca_lib import cache, interface, repo

FOLDERS = ("docs", "include", "kernel", "providers", "qemu-device", "tests", "tools", "README.md", "Kbuild", "CMakeLists.txt")
HEADING = re.compile(r"^(\d+(?:\.\d+)?)\.? (\S.*)\n[-=]{3,}$", re.MULTILINE)
# A comment goes on in its next line.
BREAK = re.compile(r"\n[ \t]*(?://|\*|#)?[ \t]*")
NUMBERS = r"((?:section )?\d+(?:\.\d+)?(?:(?:, | and | to | or )(?:section )?\d+(?:\.\d+)?(?![\w-]))*)"
CITED = re.compile(rf"(?:[Ii]nterface document|hardware-interface\.rst)(?:`?`?_*| <[^>]*>`?_*)?, {NUMBERS}|"
                   rf"[Ss]ections? {NUMBERS} of the interface document|\bDocument {NUMBERS}")
# Of the document itself: (4.28), (see 5.1), 4.15 and 4.16 in brackets.
WITHIN = re.compile(r"\((?:see )?(\d+\.\d+(?:(?:, | and | to )\d+\.\d+)*)\)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
NAME = re.compile(r"\bHGHCA_[A-Z0-9_]*[A-Z0-9_]\b(?:\*)?|\bHGHCA_\*")
# What is no word of a title that a citation would repeat.
SMALL = {"and", "of", "the", "on", "ext", "a", "to"}


def sections():
    """Number -> title."""
    return dict(HEADING.findall(interface.document()))


def texts():
    """Path -> text of all sources that may cite."""
    found = {}
    for path in cache.tree_files(*(repo.path(name) for name in FOLDERS)):
        if path.name != Path(__file__).name:   # which cites what is wrong, too
            found[path.relative_to(repo.ROOT)] = path.read_text()
    return found


def cited(text):
    """The numbers of sections that a text cites by the document's name."""
    return [number for groups in CITED.findall(BREAK.sub(" ", text)) for number in NUMBER.findall(" ".join(groups))]


def is_pattern(name):
    return name.endswith("*")


def dangling(names, known):
    """Those of the names and patterns that no name in `known` is."""
    known = {name for name in known if not is_pattern(name)}
    return [name for name in names
            if not (any(each.startswith(name[:-1]) for each in known) if is_pattern(name) else name in known)]


def names_of(text):
    return set(NAME.findall(text))


def test_sections():
    """Each section of the interface document that a comment or a document cites exists"""
    known = sections()
    found = {path: cited(text) for path, text in texts().items()}
    assert sum(map(len, found.values())) > 100, "citations were not found"
    same([f"{path}: {number}" for path, numbers in found.items() for number in numbers if number not in known], [],
         "citations of no section")
    within = [number for numbers in WITHIN.findall(interface.document()) for number in NUMBER.findall(numbers)]
    assert len(within) > 30, "references of the document to itself were not found"
    same([number for number in within if number not in known], [], "references to no section")


def test_chapters():
    """The overview of the interface document names each of its chapters, in the order of their sections"""
    folder = repo.path("docs/reference/hardware")
    same(sorted(path.name for path in folder.iterdir()), sorted(path.name for path in interface.pages()[1:]), "chapters")
    numbers = [[int(part) for part in number.split(".")] for number, _ in HEADING.findall(interface.document())]
    same(numbers, sorted(numbers), "sections")
    same(numbers[-1], [16, 5], "the last section")


def words(text):
    return {word.rstrip("s") for word in re.findall(r"[a-z]{2,}", text.lower())} - SMALL


def astray(text, known):
    """Citations of subsections whose titles have no word in common with what stands around them."""
    flat = BREAK.sub(" ", text)
    return [f"{number} {known[number]}" for match in CITED.finditer(flat)
            for number in NUMBER.findall(" ".join(filter(None, match.groups())))
            if "." in number and number in known
            and not words(known[number]) & words(flat[max(0, match.start() - 300):match.end() + 100])]


def test_titles():
    """What the documents cite a section for is in its title"""
    known = sections()
    same([f"{path}: {wrong}" for path, text in texts().items()
          if path.suffix in (".md", ".rst") and repo.path(str(path)) not in interface.pages()
          for wrong in astray(text, known)], [], "citations that are astray")


def test_names():
    """Each HGHCA_... that a document names exists, and each HGHCA_...* that any source does"""
    sources = texts()
    documents = {path for path in sources if path.suffix in (".md", ".rst")}
    # Of the headers; else variables of the environment and of a build.
    known = {name for path, text in sources.items() if path.parts[0] == "include" for name in names_of(text)}
    known |= {name for path, text in sources.items() if path not in documents
              for name in re.findall(r'"(HGHCA_\w+)"', text)}
    known |= names_of(sources[Path("Kbuild")]) | names_of(sources[Path("CMakeLists.txt")])
    same([f"{path}: {name}" for path in documents for name in dangling(sorted(names_of(sources[path])), known)], [],
         "names of nothing")
    # A source may also cite names of its own.
    known |= {name for path in sources.keys() - documents for name in names_of(sources[path])}
    same([f"{path}: {name}" for path in sources.keys() - documents for name in dangling(sorted(names_of(sources[path])), known)
          if is_pattern(name)], [], "names of nothing in sources")


def test_found():
    """A citation of no section, one that is astray, and a name of nothing are found"""
    same(cited("(interface document, 4.15 and 5.2)\n/* Document 3.2. */ // interface\n// document, section 9.\n"
               "`the interface document <hardware-interface.rst>`__, 4.28), 300 ns; section 6 of the interface\n"
               " * document; 7.1"), ["4.15", "5.2", "3.2", "9", "4.28", "6"], "citations")
    known = {"4.26": "Congestion control **ext**", "4.28": "Error buffer **ext**"}
    text = "The buffer keeps what was refused (interface document, {}).\n"
    same(astray(text.format("4.28") + text.format("4.26"), known), ["4.26 Congestion control **ext**"], "astray")
    same(dangling(["HGHCA_CAP_*", "HGHCA_VENDOR_ERR_*", "HGHCA_CAP_SRQ", "HGHCA_CAP"],
                  {"HGHCA_CAP_SRQ", "HGHCA_VENDOR_ERR_*"}),
         ["HGHCA_VENDOR_ERR_*", "HGHCA_CAP"], "names")
    same(names_of("``HGHCA_ACCESS_*``, HGHCA_CAP_SRQ."), {"HGHCA_ACCESS_*", "HGHCA_CAP_SRQ"}, "names of a text")
