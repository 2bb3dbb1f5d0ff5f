# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documents name as proof exists."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tool import same

from hghca_lib import cache, repo, userland

GUEST = repo.path("tests/guest")


def tables(path, heading):
    """The rows, as lists of cells, of the first table below a heading of a document."""
    text = path.read_text()
    text = text[text.index(f"\n## {heading}\n"):]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE).group(1)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]


def missing(proofs, names):
    """Those of the proofs that name nothing: no test of the guest's, no case of a program there, no file."""
    return [proof for proof in proofs if not exists(proof, names)]


def exists(proof, names):
    file, _, case = proof.partition(": ")
    if file.startswith("programs/"):
        source = GUEST / file
        if not case or not source.is_file():
            return source.is_file()
        return re.search(rf'^\t\{{ "[^"]*{re.escape(case)}', source.read_text(), re.MULTILINE) is not None
    if "/" in proof:
        return (repo.ROOT / proof).exists()
    pattern = ".*".join(map(re.escape, proof.split("...")))
    return any(re.match(pattern, name) for name in names)


def registered():
    """The names of all tests, with each rdma-core."""
    said = [subprocess.run([sys.executable, GUEST / "run", "--list", "--tier", "all", "--userland", name], capture_output=True,
                           text=True, check=True).stdout for name in userland.NAMES]
    return "".join(said).splitlines()


def proofs_of(rows):
    """What stands between backquotes in the last cells; a row without any is an error."""
    found = []
    for row in rows:
        named = re.findall(r"`([^`]+)`", row[-1])
        assert named, f"no proof for {row[0]}"
        found += named
    return found


def test_verbs():
    """Each test that the table of verbs names exists"""
    same(missing(proofs_of(tables(repo.path("docs/reference/verbs.md"), "Verbs")), registered()), [], "missing tests")


def test_guest_tables():
    """Each test that the tables of the guest tests' document name exists"""
    path, names = GUEST / "README.md", registered()
    for heading in ("Isolation: what shows it", "Bad input: what shows it"):
        same(missing(proofs_of(tables(path, heading)), names), [], f"missing tests of {heading}")


def test_missing():
    """A test, a case or a file that does not exist is found"""
    wrong = ["pingpong: of another kind", "programs/mr.c: no such case", "programs/none.c: access", "tests/none",
             "windows: ... none", "all, an HCA to itself"]
    sound = ["pingpong", "windows: all, ... extended", "programs/mr.c: imported", "tests/kunit", "programs/isolation.c"]
    same(missing(wrong + sound, registered()), wrong, "what does not exist")


def test_bench():
    """The page on measuring has each figure of the bench, and no other"""
    from hghca_lib import figures
    rows = tables(repo.path("docs/howto/measure.md"), "Figures")
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    same(named, [figure.name for figure in figures.FIGURES], "figures")


def dead_links(path):
    """The targets of a document's links to files that are not there."""
    pattern = r"<([^<>\s]+)>`_" if path.suffix == ".rst" else r"\]\(([^)\s]+)\)"
    targets = [target.partition("#")[0] for target in re.findall(pattern, path.read_text())]
    return [target for target in targets if target and "://" not in target and not (path.parent / target).exists()]


def test_links():
    """Each file that a document links to exists"""
    pages = [page for page in cache.tree_files(repo.path("docs"), *repo.ROOT.glob("*.md"), GUEST / "README.md")
             if page.suffix in (".md", ".rst")]
    assert len(pages) > 20, f"only {len(pages)} documents were found"
    same([f"{page.relative_to(repo.ROOT)}: {target}" for page in pages for target in dead_links(page)], [], "dead links")


def test_dead_links():
    """A link to a file that does not exist is found in both kinds of documents"""
    texts = {"a.md": "[one](b.rst#part) [two](c.md) [three](https://example.org/d)",
             "b.rst": "`one <a.md>`__ and `two <d.rst>`_"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text)
        same([dead_links(Path(folder) / name) for name in texts], [["c.md"], ["d.rst"]], "dead links")
