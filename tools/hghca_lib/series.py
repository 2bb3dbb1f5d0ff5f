# SPDX-License-Identifier: GPL-2.0-or-later
"""A series of patches that puts parts of the checkout into the tree of another project, a topic each, with a cover letter.

A project is a Project: its topics, and what the checkout's text becomes in its tree.
"""

import dataclasses
import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import repo
from .errors import ToolError, UsageError

# The numbers of enum rdma_driver_id, which the kernel and rdma-core each have in a header: a provider is refused whose
# number is not the driver's. They are those behind the last driver of the newest kernel.
DRIVER_IDS = {"RDMA_DRIVER_HGHCA": 22, "RDMA_DRIVER_ERNIC": 23}
ENUM_OF_IDS = re.compile(r"enum rdma_driver_id \{\n(?P<body>[^}]*)")
ENUMERATOR = re.compile(r"^\t(?P<name>\w+)(?: = (?P<value>\w+))?,", re.MULTILINE)

# Documents of the checkout that headers name, which another tree does not have.
DOCUMENTS = (
    ("include/*", "docs/reference/hardware-interface.rst", "interface document"),
    ("include/*", "docs/reference/rsnic.rst", "interface of RSNIC"),
)


@dataclasses.dataclass(frozen=True)
class Insert:
    """Text that stands behind the first match of a pattern in a file of the tree."""
    file: str
    behind: str
    text: str


@dataclasses.dataclass(frozen=True)
class Topic:
    """One patch.

    sources: pattern of the checkout -> folder of the tree. The longest pattern that fits a file has it.
    texts:   files of the project's folder of texts, at their paths in the tree.
    ids:     names of DRIVER_IDS, which the tree's header gets.
    """
    subject: str
    body: str
    sources: dict = dataclasses.field(default_factory=dict)
    texts: tuple = ()
    inserts: tuple = ()
    ids: tuple = ()


@dataclasses.dataclass(frozen=True)
class Person:
    """Who exports: the author of the patches, and whom MAINTAINERS names."""
    name: str
    email: str


@dataclasses.dataclass(frozen=True)
class Project:
    """What is exported to a tree.

    module:   the file with these tables, which an error names.
    roots:    folders of the checkout, all files of which are exported, but for the patterns of left_out.
    replaced: text of the checkout that the tree has otherwise: (pattern of files, text, text in the tree).
    header:   of the tree, with enum rdma_driver_id.
    texts:    folder of the checkout with files that only the tree has.
    """
    module: str
    cover: str
    topics: tuple
    roots: tuple
    left_out: dict
    replaced: tuple
    header: str
    texts: str = ""

    def check(self, tree):
        """Raise an error unless the tree can take the patches."""
        raise NotImplementedError

    def files(self):
        """The files of the tree that the patches change."""
        return sorted({self.header, *(insert.file for topic in self.topics for insert in topic.inserts)})

    def changes(self, topic, tree, person):
        """What a patch adds or changes: path in the tree -> its text; `tree` has the files that the patches before it left."""
        found = {target: self.text_of(source) for source, target in self.placed(topic).items()}
        for name in topic.texts:
            found[name] = of(person, repo.path(f"{self.texts}/{name}").read_text())
        for name in topic.ids:
            found[self.header] = self.numbered(name, found.get(self.header) or (tree / self.header).read_text())
        for insert in topic.inserts:
            before = found.get(insert.file) or (tree / insert.file).read_text()
            found[insert.file] = self.inserted(insert, of(person, insert.text), before)
        return found

    def placed(self, topic):
        """The sources of a topic: path in the checkout -> path in the tree."""
        return {source: f"{folder}/{Path(source).name}" for source in self.sources()
                for folder, owner in [self.place_of(source)] if owner is topic}

    def sources(self):
        """The files that are exported, as paths of the checkout."""
        found = [str(path.relative_to(repo.ROOT)) for name in self.roots for path in repo.path(name).rglob("*") if path.is_file()]
        return sorted(source for source in found if not any(fnmatch.fnmatch(source, pattern) for pattern in self.left_out))

    def place_of(self, source):
        """(folder of the tree, topic) of a source."""
        fitting = [(len(pattern), folder, topic) for topic in self.topics for pattern, folder in topic.sources.items()
                   if fnmatch.fnmatch(source, pattern)]
        if not fitting:
            raise ToolError(f"{source} has no place in the tree", f"add it to a topic, or to what is left out, in {self.module}")
        return max(fitting, key=lambda each: each[0])[1:]

    def text_of(self, source):
        """A source as it stands in the tree."""
        text = repo.path(source).read_text()
        for pattern, old, new in self.replaced:
            if fnmatch.fnmatch(source, pattern):
                text = text.replace(old, new)
        return text

    def inserted(self, insert, addition, text):
        found = re.search(insert.behind, text)
        if not found:
            raise ToolError(f"{insert.file} of the tree has no line for {insert.behind!r}, behind which the drivers belong",
                            f"use a tree of the version that they are written for, or change the line in {self.module}")
        return text[:found.end()] + addition + text[found.end():]

    def numbered(self, name, text):
        """The header of ids with one more, at the end. Its number is written only if the drivers before it have a lower one."""
        found = ENUM_OF_IDS.search(text)
        if not found:
            raise ToolError(f"{self.header} of the tree has no enum rdma_driver_id",
                            "use a tree of the version that the drivers are written for")
        following = 1 + max(numbers_of(text).values())
        number = DRIVER_IDS[name]
        if following > number:
            raise ToolError(f"{self.header} of the tree has the number {number} for another driver, not for {name}",
                            "change the numbers in tools/hghca_lib/series.py, then export to Linux and to rdma-core")
        return text[:found.end()] + f"\t{name}{'' if following == number else f' = {number}'},\n" + text[found.end():]


def numbers_of(text):
    """{name: number} of the enumerators in a header of ids."""
    numbers, following = {}, 0
    for each in ENUMERATOR.finditer(ENUM_OF_IDS.search(text)["body"]):
        value = each["value"]
        if value:
            following = numbers[value] if value in numbers else int(value, 0)
        numbers[each["name"]] = following
        following += 1
    return numbers


def write(project, tree, output, person, signoff=False):
    """Write the patches for a tree in a folder; their paths. The first is the cover letter."""
    project.check(tree)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} exists and is not an empty folder", "remove it, or name another with --output")
    with tempfile.TemporaryDirectory() as scratch:
        git = Git(Path(scratch), person)
        for file in project.files():
            git.write(file, (tree / file).read_text())
            shutil.copymode(tree / file, git.folder / file)
        git.commit("base")
        for topic in project.topics:
            for file, text in project.changes(topic, git.folder, person).items():
                git.write(file, text)
            git.commit(f"{topic.subject}\n\n{topic.body}\n")
        git.run("config", "branch.series.description", project.cover)
        git.run("format-patch", "--quiet", "--cover-letter", "--cover-from-description=subject", "--no-renames",
                f"--output-directory={output.absolute()}", *(["--signoff"] if signoff else []), f"-{len(project.topics)}")
    return sorted(output.glob("*.patch"))


def author():
    """The Person that git takes for the author of a commit in the checkout."""
    if not shutil.which("git"):
        raise ToolError("git is not installed", "install the package git")
    done = subprocess.run(["git", "-C", repo.ROOT, "var", "GIT_AUTHOR_IDENT"], capture_output=True, text=True)
    found = re.match(r"(.+) <(.+)> ", done.stdout)
    if done.returncode or not found:
        raise ToolError("git does not know who the author is",
                        "run `git config --global user.name NAME` and `git config --global user.email ADDRESS`")
    return Person(*found.groups())


def of(person, text):
    return text.replace("@NAME@", person.name).replace("@EMAIL@", person.email)


class Git:
    """A repository in a folder, with one branch, `series`; git's settings of the user do not count there."""

    def __init__(self, folder, person):
        self.folder = folder
        who = {f"GIT_{role}_{kind}": value for role in ("AUTHOR", "COMMITTER")
               for kind, value in (("NAME", person.name), ("EMAIL", person.email))}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.env = {**kept, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        self.run("init", "--quiet", "--initial-branch=series")

    def run(self, *arguments, stdin=None):
        done = subprocess.run(["git", "-C", self.folder, *arguments], env=self.env, input=stdin, capture_output=True, text=True)
        if done.returncode:
            raise ToolError(f"git {arguments[0]} failed: {done.stderr.strip()}")

    def write(self, file, text):
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message):
        self.run("add", "--all", "--force")
        self.run("commit", "--quiet", "--file=-", stdin=message)
