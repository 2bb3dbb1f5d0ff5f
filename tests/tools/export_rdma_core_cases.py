# SPDX-License-Identifier: GPL-2.0-or-later
"""The export to the tree of rdma-core: the series, for the tree of the build root's version, and trees that it refuses.

The version that the providers are written for has to be fetched, so it is in the suite upstream. In the lines that the
series changes, the two trees differ by what make_newest() does.
"""

import contextlib
import fnmatch
import re
import tempfile
from pathlib import Path

from export_cases import PERSON, git
from tool import holds, same

from hghca_lib import buildroot, cache, export, rdma_core, repo, series
from hghca_lib.errors import ToolError
from hghca_lib.export_rdma_core import RDMA_CORE


def make_newest(tree):
    """What version 56.1 lacks of the newest."""
    version = 'set(PACKAGE_VERSION "{}")'
    for file, old, new in (("CMakeLists.txt", version.format(rdma_core.STOCK), version.format(f"{rdma_core.NEWEST}.0")),
                           ("suse/rdma-core.spec", "%post -n %efa_lname -p /sbin/ldconfig", "%ldconfig_scriptlets -n %efa_lname")):
        text = (tree / file).read_text()
        holds(text, old)
        (tree / file).write_text(text.replace(old, new))


@contextlib.contextmanager
def unpacked():
    """The tree of the build root's version, as a repository of git."""
    with tempfile.TemporaryDirectory() as folder:
        tree = rdma_core.unpack(buildroot.make(), rdma_core.STOCK, Path(folder), cache.log_path("test-export"), "test", "")
        for arguments in (["init", "--quiet"], ["add", "--all", "--force"], ["commit", "--quiet", "--message=base"]):
            git(tree, *arguments)
        yield tree


def refused(tree):
    try:
        series.write(RDMA_CORE, tree, tree.parent / "refused", PERSON)
    except ToolError as error:
        return str(error)
    raise AssertionError("no error")


def test_series():
    """git am applies the series, a commit for each topic; the tree then has each source and each line; others are refused"""
    with unpacked() as tree:
        holds(refused(tree), f"older than rdma-core {rdma_core.NEWEST}", "cure:")
        make_newest(tree)
        git(tree, "commit", "--quiet", "--all", "--message=newest")
        patches = series.write(RDMA_CORE, tree, tree.parent / "series", PERSON, signoff=True)
        holds(patches[0].read_text(), "[PATCH 0/", RDMA_CORE.cover.splitlines()[0])
        git(tree, "am", "--quiet", "--empty=drop", *map(str, patches))
        same(git(tree, "log", "--reverse", "--format=%s").splitlines()[2:], [topic.subject for topic in RDMA_CORE.topics])
        for topic in RDMA_CORE.topics:
            for source, target in RDMA_CORE.placed(topic).items():
                same((tree / target).read_text(), RDMA_CORE.text_of(source), target)
        # Version 56.1 has fewer drivers, so the number is written.
        numbers = series.numbers_of((tree / RDMA_CORE.header).read_text())
        same({name: numbers[name] for name in series.DRIVER_IDS}, series.DRIVER_IDS, "numbers")
        changed = git(tree, "diff", "--summary", f"HEAD~{len(RDMA_CORE.topics)}").splitlines()
        same({line.rpartition(" ")[0] for line in changed}, {" create mode 100644"}, "new files and changes of mode")
        holds((tree / "CMakeLists.txt").read_text(), "add_subdirectory(providers/erdma)\nadd_subdirectory(providers/ernic)\n"
              "add_subdirectory(providers/hghca)\nadd_subdirectory(providers/hghca/man)\nadd_subdirectory(providers/hns)\n")
        holds((tree / "kernel-headers/CMakeLists.txt").read_text(), "  rdma/ernic-abi.h\n  rdma/hghca-abi.h\n  rdma/hns-abi.h\n")
        holds((tree / "libibverbs/verbs.h").read_text(), "verbs_provider_erdma;\nextern const struct verbs_device_ops "
              "verbs_provider_ernic;\n", "verbs_provider_hfi1verbs;\nextern const struct verbs_device_ops verbs_provider_hghca;\n")
        holds((tree / "MAINTAINERS").read_text(),
              "\n\nHGHCA USERSPACE PROVIDER (for hghca.ko)\nM:\tAn Author <author@example.org>\n")
        holds((tree / "debian/ibverbs-providers.symbols").read_text(), " HGHCA_1.0@HGHCA_1.0 65\n hghcadv_crc64@HGHCA_1.0 65\n")
        same((tree / "suse/rdma-core.spec").read_text().count("Requires:       %{hghca_lname} = %{version}-%{release}\n"), 2)
        holds(refused(tree), "has providers/hghca already", "cure:")
        (tree / "MAINTAINERS").unlink()
        holds(refused(tree), "is not a tree of rdma-core: it lacks MAINTAINERS", "cure:")


def test_sources():
    """The exported sources read no file out of the tree, and name nothing of the checkout; each pattern fits a file"""
    texts = {source: RDMA_CORE.text_of(source) for source in RDMA_CORE.sources()}
    targets = {target: source for topic in RDMA_CORE.topics for source, target in RDMA_CORE.placed(topic).items()}
    same(sorted(targets.values()), sorted(texts), "sources with a place")
    for target, source in targets.items():
        for name in re.findall(r'#include "(.*)"', texts[source]):
            assert str((Path(target).parent / name)) in targets, f"{target} includes {name}"
        same(re.findall(r"#include <(?:hghca/|\w*_hw\.h).*", texts[source]), [], f"includes of {target}")
    same([source for source, text in texts.items()
          if "docs/" in text or "RDMA_DRIVER_UNKNOWN" in text or "__KERNEL__" in text], [], "left names")
    files = [str(path.relative_to(repo.ROOT)) for name in RDMA_CORE.roots for path in repo.path(name).rglob("*")]
    patterns = [*RDMA_CORE.left_out, *(pattern for topic in RDMA_CORE.topics for pattern in topic.sources)]
    same([pattern for pattern in patterns if not fnmatch.filter(files, pattern)], [], "patterns without files")
    same([old for pattern, old, _ in RDMA_CORE.replaced
          if not any(old in repo.path(source).read_text() for source in fnmatch.filter(texts, pattern))], [], "texts to replace")
    holds(texts["providers/ernic/ernic.c"], "#define ERNIC_PCI_VENDOR_ID\t\t0x1af4\n#define ERNIC_PCI_DEVICE_ID\t\t0x10f3\n")


def test_ids():
    """A provider has the id of its driver: the same one in both exports, and none in the checkout"""
    for name, driver, provider in (("HGHCA", "kernel/main.c", "providers/hghca/hghca.c"),
                                   ("ERNIC", "kernel/ernic/ibdev.c", "providers/ernic/ernic.c")):
        for project, source in ((export.LINUX, driver), (RDMA_CORE, provider)):
            same(set(re.findall(r"RDMA_DRIVER_\w+", project.text_of(source))), {f"RDMA_DRIVER_{name}"}, source)
            same(set(re.findall(r"RDMA_DRIVER_\w+", repo.path(source).read_text())), {"RDMA_DRIVER_UNKNOWN"}, source)
    same([name for project in (export.LINUX, RDMA_CORE) for topic in project.topics for name in topic.ids],
         2 * [*series.DRIVER_IDS], "ids of both exports")
