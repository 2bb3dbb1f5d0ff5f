# SPDX-License-Identifier: GPL-2.0-or-later
"""The export to a kernel's tree: the series, for a tree of a few lines made here, and trees that it refuses."""

import contextlib
import fnmatch
import os
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

from tool import fails, hghca, holds, same

from hghca_lib import export, repo, series
from hghca_lib.errors import ToolError

PERSON = series.Person("An Author", "author@example.org")
MAINTAINERS = ("Maintainers List\n----------------\n\n3C59X NETWORK DRIVER\nS:\tOdd Fixes\n\nFBTFT FRAMEBUFFER DRIVERS\n"
               "S:\tOrphan\n\nKCSAN\nS:\tMaintained\n\nTHE REST\nS:\tBuried alive in reporters\n")
# Each line is there because the drivers belong behind it.
FILES = {
    "Makefile": "VERSION = 7\nPATCHLEVEL = 3\n",
    "MAINTAINERS": MAINTAINERS,
    "drivers/infiniband/Kconfig": 'source "drivers/infiniband/hw/erdma/Kconfig"\nsource "drivers/infiniband/hw/hfi1/Kconfig"\n',
    "drivers/infiniband/hw/Makefile": "obj-$(CONFIG_INFINIBAND_IONIC)\t\t+= ionic/\n",
    "drivers/dma/Kconfig": 'source "drivers/dma/qcom/Kconfig"\n\nendif\n',
    "drivers/dma/Makefile": "obj-$(CONFIG_INTEL_LDMA) += lgm/\n\nobj-y += amd/\n",
    "Documentation/infiniband/index.rst": "   core_locking\n   ipoib\n",
    f"{export.BINDINGS}/vendor-prefixes.yaml": '  "^hechuang,.*":\n    description: Shenzhen Hechuang\n',
    export.IDS: "enum rdma_driver_id {\n\tRDMA_DRIVER_UNKNOWN,\n\tRDMA_DRIVER_IONIC = 21,\n};\n",
}


@contextlib.contextmanager
def small_tree(**changed):
    """A folder with FILES, some changed: path with _ for / and . -> text, or None for a file that is missing."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "linux"
        for file, text in FILES.items():
            text = changed.get(file.replace("/", "_").replace(".", "_"), text)
            if text is not None:
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                (tree / file).write_text(text)
        yield tree


def git(tree, *arguments):
    done = subprocess.run(["git", "-C", tree, "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
                          capture_output=True, text=True)
    same(done.returncode, 0, done.stderr)
    return done.stdout


def refused(tree):
    try:
        series.write(export.LINUX, tree, tree.parent / "series", PERSON)
    except ToolError as error:
        return str(error)
    raise AssertionError("no error")


def test_series():
    """git am applies the series, a commit for each topic; the tree then has each source and each line"""
    with small_tree() as tree:
        for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=base"]):
            git(tree, *arguments)
        patches = series.write(export.LINUX, tree, tree.parent / "series", PERSON, signoff=True)
        same(len(patches), 1 + len(export.TOPICS), "patches")
        holds(patches[0].read_text(), "[PATCH 00/", export.COVER.splitlines()[0], "From: An Author <author@example.org>")
        git(tree, "am", "--quiet", "--empty=drop", *map(str, patches))
        same(git(tree, "log", "--reverse", "--format=%s").splitlines(), ["base", *(topic.subject for topic in export.TOPICS)])
        holds(git(tree, "log", "-1", "--format=%b"), "Signed-off-by: An Author <author@example.org>")
        for topic in export.TOPICS:
            for source, target in export.LINUX.placed(topic).items():
                same((tree / target).read_text(), export.LINUX.text_of(source), target)
        holds((tree / export.IDS).read_text(), "RDMA_DRIVER_IONIC = 21,\n\tRDMA_DRIVER_HGHCA,\n\tRDMA_DRIVER_ERNIC,\n};")
        holds((tree / export.HGHCA / "main.c").read_text(), "RDMA_DRIVER_HGHCA")
        holds((tree / export.HGHCA / "Makefile").read_text(), "obj-$(CONFIG_INFINIBAND_HGHCA) += hghca.o",
              "\thw/cmd.o", "hghca-$(CONFIG_DCB) += \\\n\tnet/dcb.o\n")
        titles = [entry.splitlines()[0] for entry in (tree / "MAINTAINERS").read_text().split("\n\n")[1:]]
        same(titles, ["3C59X NETWORK DRIVER", "ERNIC RDMA DRIVER", "FBTFT FRAMEBUFFER DRIVERS", "JINGZHAO HCA DRIVER",
                      "KCSAN", "RDMA LOOPBACK CONTROLLER DRIVER", "THE REST"], "entries")


def test_places():
    """Each source has a place, no folder of the tree names the checkout's, and each pattern fits a file"""
    texts = {source: export.LINUX.text_of(source) for source in export.LINUX.sources()}
    assert len(texts) > 80, len(texts)
    same([source for source, text in texts.items() if "docs/" in text or "RDMA_DRIVER_UNKNOWN" in text], [], "left names")
    files = [str(path.relative_to(repo.ROOT)) for name in ("kernel", "include") for path in repo.path(name).rglob("*")]
    patterns = [*export.LEFT_OUT, *(pattern for topic in export.TOPICS for pattern in topic.sources)]
    same([pattern for pattern in patterns if not fnmatch.filter(files, pattern)], [], "patterns without files")
    same([old for pattern, old, _ in export.REPLACED
          if not any(old in repo.path(source).read_text() for source in fnmatch.filter(texts, pattern))], [], "texts to replace")


def test_driver_ids():
    """A driver's id has its number in any tree: written if drivers are missing before it, refused if another has it"""
    head = "enum rdma_driver_id {\n\tRDMA_DRIVER_UNKNOWN,\n\tRDMA_DRIVER_I40IW,\n\tRDMA_DRIVER_IRDMA = RDMA_DRIVER_I40IW,\n"
    same(series.numbers_of(head + "\tRDMA_DRIVER_EFA,\n\tRDMA_DRIVER_SIW = 0x10,\n};\n"),
         {"RDMA_DRIVER_UNKNOWN": 0, "RDMA_DRIVER_I40IW": 1, "RDMA_DRIVER_IRDMA": 1, "RDMA_DRIVER_EFA": 2,
          "RDMA_DRIVER_SIW": 16}, "numbers of a header")
    for last, wanted in (("", "\tRDMA_DRIVER_HGHCA = 22,\n\tRDMA_DRIVER_ERNIC,\n"),
                         ("\tRDMA_DRIVER_IONIC = 21,\n", "\tRDMA_DRIVER_HGHCA,\n\tRDMA_DRIVER_ERNIC,\n")):
        text = f"{head}{last}}};\n"
        for name in ("RDMA_DRIVER_HGHCA", "RDMA_DRIVER_ERNIC"):
            text = export.LINUX.numbered(name, text)
        same(text, f"{head}{last}{wanted}}};\n")
        numbers = series.numbers_of(text)
        same((numbers["RDMA_DRIVER_HGHCA"], numbers["RDMA_DRIVER_ERNIC"]), (22, 23), "numbers")
    with small_tree(**{export.IDS.replace("/", "_").replace(".", "_"):
                       f"{head}\tRDMA_DRIVER_OTHER = 22,\n}};\n"}) as tree:
        holds(refused(tree), "has the number 22 for another driver, not for RDMA_DRIVER_HGHCA", "cure:")


def test_refused_trees():
    """A folder that is no kernel's tree, an older kernel, a tree with the drivers, and one without a line are refused"""
    with small_tree(MAINTAINERS=None) as tree:
        holds(refused(tree), "is not a kernel's tree: it lacks MAINTAINERS", "cure:")
    with small_tree(Makefile="VERSION = 6\nPATCHLEVEL = 12\n") as tree:
        holds(refused(tree), "older than Linux 7.3", "cure:")
    with small_tree() as tree:
        (tree / export.ERNIC).mkdir()
        holds(refused(tree), f"has {export.ERNIC} already", "cure:")
    with small_tree(drivers_dma_Kconfig="endif\n") as tree:
        holds(refused(tree), "drivers/dma/Kconfig of the tree has no line for", "cure:")
    with small_tree(Makefile="VERSION = 8\nPATCHLEVEL = 0\n") as tree:
        export.LINUX.check(tree)


def test_command():
    """The command names the patches; wrong arguments, and a folder that is in use, are refused with a cure"""
    identity = {"GIT_AUTHOR_NAME": "An Author", "GIT_AUTHOR_EMAIL": "author@example.org"}
    fails(hghca("export", "windows", "/"), 2, "windows", "linux")
    fails(hghca("export", "linux", "/etc", env=identity), 2, "/etc is not a kernel's tree", "cure:")
    with small_tree() as tree:
        folder = tree.parent / "series"
        ended = hghca("export", "linux", tree, "--output", folder, env=identity)
        same((ended.status, ended.stderr), (0, ""))
        same(ended.stdout.splitlines()[:-1], sorted(map(str, folder.iterdir())), "what is said")
        holds(ended.stdout, f"git -C {tree} am --empty=drop {folder}/*.patch\n")
        fails(hghca("export", "linux", tree, "--output", folder, env=identity), 2, "not an empty folder", "--output")


def test_unknown_author():
    """Without a name of the author, the error says how to set one"""
    failed = subprocess.CompletedProcess([], 128, "", "Please tell me who you are.")
    with mock.patch.object(subprocess, "run", lambda *_, **__: failed), mock.patch.dict(os.environ):
        try:
            series.author()
        except ToolError as error:
            holds(str(error), "git config --global user.name", "user.email")
        else:
            raise AssertionError("no error")
