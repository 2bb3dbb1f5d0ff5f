# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca export`: the drivers as a series of patches for a kernel's tree, or the providers as one for rdma-core's.

What follows is about the drivers; export_rdma_core.py is about the providers.
The sources are those of the checkout, in other folders. What a tree needs beside them is written here: the Makefiles, from
the lists of Kbuild, and the lines in files that the tree has. tools/linux has the other files, at their paths in the tree.
"""

import bisect
import dataclasses
import re
from pathlib import Path

from . import export_rdma_core, lines, repo, series
from .errors import UsageError
from .series import Insert

OUTPUT = "hghca-patches"
TEXTS = "tools/linux"
ABI = "include/uapi/rdma"
HGHCA = "drivers/infiniband/hw/hghca"
ERNIC = "drivers/infiniband/hw/ernic"
LOOPBACK = "drivers/dma/rdma-loopback"
BINDINGS = "Documentation/devicetree/bindings"
IDS = f"{ABI}/ib_user_ioctl_verbs.h"
# The tree's own files that every tree has which can take the drivers.
TREE_FILES = ["Makefile", "MAINTAINERS", "drivers/infiniband/hw/Makefile", "drivers/dma/Makefile", IDS]
# What is not exported, as patterns.
LEFT_OUT = {
    "kernel/compat/*": "what older kernels lack",
    "include/hghca_wire.h": "packets, which the device sends",
    "*/.clang-format": "the checkout's",
}


@dataclasses.dataclass(frozen=True)
class Driver:
    """A module: its folder, its option, the folders of its headers."""
    name: str
    folder: str
    option: str
    headers: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of MAINTAINERS; `paths` are sorted."""
    title: str
    mailing_list: str
    paths: tuple


@dataclasses.dataclass(frozen=True)
class Topic(series.Topic):
    """One patch.

    driver: whose Makefile it adds.
    entry:  in MAINTAINERS.
    """
    driver: Driver = None
    entry: Entry = None


DRIVERS = (
    Driver("hghca", HGHCA, "INFINIBAND_HGHCA", "-I$(src)"),
    Driver("ernic", ERNIC, "INFINIBAND_ERNIC", f"-I$(srctree)/{HGHCA}"),
    Driver("rdma-loopback", LOOPBACK, "RDMA_LOOPBACK_DMA", f"-I$(srctree)/{HGHCA}"),
)
HGHCA_DRIVER, ERNIC_DRIVER, LOOPBACK_DRIVER = DRIVERS
RDMA_LIST, DMA_LIST = "linux-rdma@vger.kernel.org", "dmaengine@vger.kernel.org"
# Text of the checkout that the tree has otherwise: (pattern of files, text, text in the tree).
REPLACED = (
    ("kernel/main.c", "RDMA_DRIVER_UNKNOWN", "RDMA_DRIVER_HGHCA"),
    ("kernel/ernic/ibdev.c", "RDMA_DRIVER_UNKNOWN", "RDMA_DRIVER_ERNIC"),
    *series.DOCUMENTS,
    ("include/*", "docs/reference/ernic.rst", "interface of the ERNIC"),
    ("include/*", "; docs/reference/loopback.rst", ""),
    ("kernel/loopback/*", "docs/reference/loopback.rst describes the device.", "The device copies memory."),
)
COVER = """\
RDMA: Add drivers for the JingZhao HCA and the ERNIC

This series adds three drivers. hghca is for the JingZhao HCA and for RSNIC,
RDMA adapters for RoCE v2. ernic is for the ERNIC and the ETRNIC, embedded
RDMA network interfaces. rdma-loopback is for a DMA engine that copies memory
by way of an RDMA header.

The first patches add hghca, part by part. The last of them adds it to the
build. Those of ernic and rdma-loopback follow. Both use two headers of
hghca: the common definitions of the hardware's headers, and carrier.h, which
makes a platform device of a PCI function.

The providers for rdma-core have to use the same driver ids.
"""
TOPICS = (
    Topic("RDMA/hghca: Add the user ABI",
          "The provider and the driver exchange these structures. The device has a\n"
          "driver id, which user space uses to choose the provider.",
          {"include/uapi/rdma/hghca-abi.h": ABI},
          ids=("RDMA_DRIVER_HGHCA",),
          entry=Entry("JINGZHAO HCA DRIVER", RDMA_LIST,
                      ("Documentation/infiniband/hghca.rst", f"{HGHCA}/", f"{ABI}/hghca-abi.h"))),
    Topic("RDMA/hghca: Add the hardware interface",
          "These headers define registers, commands, mailboxes, contexts, descriptors\n"
          "and events. The provider and the model of the device use them as well.",
          {"include/hghca_hw.h": HGHCA, "include/hghca/*": f"{HGHCA}/hghca"}),
    Topic("RDMA/hghca: Add the access to the device",
          "This layer has the registers, the commands, the contexts in memory of the\n"
          "host, the event queues, the memory keys and the queues. It calls no other\n"
          "layer.",
          {"kernel/*.h": HGHCA, "kernel/trace.c": HGHCA, "kernel/hw/*": f"{HGHCA}/hw"}),
    Topic("RDMA/hghca: Add the verbs",
          "These are the functions that ib_core calls, for processes and for the\n"
          "kernel's users.",
          {"kernel/verbs/*": f"{HGHCA}/verbs"}),
    Topic("RDMA/hghca: Add on-demand paging",
          "A memory region on demand pins no pages. The device reports a page fault,\n"
          "and the driver maps the page and resumes the QP. A region of all memory is\n"
          "a tree of regions.",
          {"kernel/verbs/odp*": f"{HGHCA}/verbs"}),
    Topic("RDMA/hghca: Add the Ethernet device of the port",
          "Frames go through a raw Ethernet QP. A device that lacks the port\n"
          "capability uses the Ethernet device of another adapter, with the same MAC\n"
          "address.",
          {"kernel/net/*": f"{HGHCA}/net"}),
    Topic("RDMA/hghca: Add the driver to the build",
          "This adds the PCI driver and the start and stop of a device, and with them\n"
          "the module.",
          {"kernel/*.c": HGHCA}, (f"{HGHCA}/Kconfig",),
          (Insert("drivers/infiniband/Kconfig", r'source "drivers/infiniband/hw/hfi1/Kconfig"\n', f'source "{HGHCA}/Kconfig"\n'),
           Insert("drivers/infiniband/hw/Makefile", r"\Z", "obj-$(CONFIG_INFINIBAND_HGHCA)\t\t+= hghca/\n")),
          driver=HGHCA_DRIVER),
    Topic("Documentation: infiniband: Describe the JingZhao HCA",
          "The page describes the device, the layers of its driver, and what an\n"
          "administrator can observe.",
          texts=("Documentation/infiniband/hghca.rst",),
          inserts=(Insert("Documentation/infiniband/index.rst", r"   core_locking\n", "   hghca\n"),)),
    Topic("dt-bindings: infiniband: Add ERNIC and ETRNIC",
          "They are embedded RDMA network interfaces. Their registers differ in size,\n"
          "and an ERNIC has what an ETRNIC has. The prefix hghca is that of a project.",
          texts=(f"{BINDINGS}/infiniband/xlnx,ernic.yaml",),
          inserts=(Insert(f"{BINDINGS}/vendor-prefixes.yaml", r'  "\^hechuang,\.\*":\n.*\n',
                          '  "^hghca,.*":\n    description: JingZhao HCA for Linux\n'),)),
    Topic("RDMA/ernic: Add a driver for ERNIC and ETRNIC",
          "A device has queue pairs in registers, send queues in memory, and receive\n"
          "slots that it posts again by itself. It is a platform device. For a PCI\n"
          "function that carries the registers, the driver makes one.",
          {"kernel/ernic/*": ERNIC, "include/ernic_hw.h": ERNIC, "kernel/carrier.h": HGHCA,
           "include/uapi/rdma/ernic-abi.h": ABI}, (f"{ERNIC}/Kconfig",),
          (Insert("drivers/infiniband/Kconfig", r'source "drivers/infiniband/hw/erdma/Kconfig"\n', f'source "{ERNIC}/Kconfig"\n'),
           Insert("drivers/infiniband/hw/Makefile", r"\Z", "obj-$(CONFIG_INFINIBAND_ERNIC)\t\t+= ernic/\n")),
          ("RDMA_DRIVER_ERNIC",), ERNIC_DRIVER,
          Entry("ERNIC RDMA DRIVER", RDMA_LIST,
                (f"{BINDINGS}/infiniband/xlnx,ernic.yaml", f"{ERNIC}/", f"{ABI}/ernic-abi.h"))),
    Topic("dt-bindings: dma: Add the RDMA loopback controller",
          "The controller copies memory by way of an RDMA header.",
          texts=(f"{BINDINGS}/dma/hghca,rdma-loopback.yaml",)),
    Topic("dmaengine: rdma-loopback: Add a driver",
          "The RDMA loopback controller is a DMA engine of one channel. It is a\n"
          "platform device. For a PCI function that carries the registers, the driver\n"
          "makes one.",
          {"kernel/loopback/*": LOOPBACK, "include/loopback_hw.h": LOOPBACK}, (f"{LOOPBACK}/Kconfig",),
          (Insert("drivers/dma/Kconfig", r'source "drivers/dma/qcom/Kconfig"\n\n', f'source "{LOOPBACK}/Kconfig"\n\n'),
           Insert("drivers/dma/Makefile", r"(?:obj-\$\(.*\n)(?=\nobj-y)", "obj-$(CONFIG_RDMA_LOOPBACK_DMA) += rdma-loopback/\n")),
          driver=LOOPBACK_DRIVER,
          entry=Entry("RDMA LOOPBACK CONTROLLER DRIVER", DMA_LIST,
                (f"{BINDINGS}/dma/hghca,rdma-loopback.yaml", f"{LOOPBACK}/"))),
)
# A list of objects in Kbuild: `hghca-y := kernel/main.o`.
OBJECTS = re.compile(r"^(?P<module>[\w-]+)-(?P<condition>y|\$\(CONFIG_\w+\)) [:+]=[ \t]*"
                     r"(?P<objects>(?:[\w/-]+\.o[ \t]*)+)$", re.MULTILINE)


def add_options(command):
    command.add_argument("project", choices=[*PROJECTS], help="linux takes the drivers, rdma-core the providers")
    command.add_argument("tree", metavar="DIR", help="the project's tree, which is only read")
    command.add_argument("--output", metavar="FOLDER", default=OUTPUT, help=f"where the patches go (default {OUTPUT})")
    command.add_argument("--signoff", action="store_true", help="add a Signed-off-by line of git's user")


def main(options):
    """Write the series; the exit status."""
    patches = series.write(PROJECTS[options.project], Path(options.tree), Path(options.output), series.author(), options.signoff)
    for patch in patches:
        print(patch)
    print(f"to apply them: git -C {options.tree} am --empty=drop {Path(options.output).absolute()}/*.patch")
    return 0


class Linux(series.Project):
    """The drivers in a kernel's tree."""

    def check(self, tree):
        missing = [file for file in TREE_FILES if not (tree / file).is_file()]
        if missing:
            raise UsageError(f"{tree} is not a kernel's tree: it lacks {missing[0]}", "name the folder with the sources of Linux")
        makefile = (tree / "Makefile").read_text()
        version = [re.search(rf"^{name} = (\d+)", makefile, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL")]
        newest = lines.names()[-1]
        if not all(version) or [int(number[1]) for number in version] < [int(number) for number in newest.split(".")]:
            raise UsageError(f"{tree} is older than Linux {newest}, which the drivers are written for",
                             f"use a tree of Linux {newest} or later, or build the drivers out of the tree")
        present = [driver.folder for driver in DRIVERS if (tree / driver.folder).exists()]
        if present:
            raise UsageError(f"{tree} has {present[0]} already", "check out a branch without the drivers")

    def files(self):
        return sorted({"MAINTAINERS", *super().files()})

    def changes(self, topic, tree, person):
        found = super().changes(topic, tree, person)
        if topic.driver:
            found[f"{topic.driver.folder}/Makefile"] = makefile(topic.driver)
        if topic.entry:
            found["MAINTAINERS"] = maintained(topic.entry, person, (tree / "MAINTAINERS").read_text())
        return found


LINUX = Linux("tools/hghca_lib/export.py", COVER, TOPICS, ("kernel", "include"), LEFT_OUT, REPLACED, IDS, TEXTS)
PROJECTS = {"linux": LINUX, "rdma-core": export_rdma_core.RDMA_CORE}


def maintained(entry, person, text):
    """MAINTAINERS with one more entry, at its place in the alphabet."""
    head, found, listed = text.partition("\n3C59X NETWORK DRIVER\n")
    entries = (found + listed).strip("\n").split("\n\n")
    # A few entries are not in the order of the alphabet; between others, a bisection meets none of them.
    place = bisect.bisect(entries, entry.title.upper(), key=str.upper)
    lines_of_entry = [entry.title, f"M:\t{person.name} <{person.email}>", f"L:\t{entry.mailing_list}", "S:\tMaintained",
                      *(f"F:\t{path}" for path in entry.paths)]
    entries.insert(place, "\n".join(lines_of_entry))
    return head + "\n" + "\n\n".join(entries) + "\n"


def makefile(driver):
    """The Makefile of a driver, from its lists of objects in Kbuild."""
    parts = ["# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB", f"ccflags-y := {driver.headers}", "",
             f"obj-$(CONFIG_{driver.option}) += {driver.name}.o"]
    for condition, objects in objects_of(driver):
        sign = ":=" if condition == "y" else "+="
        parts += ["", f"{driver.name}-{condition} {sign} \\", " \\\n".join(f"\t{name}" for name in objects)]
    return "\n".join(parts) + "\n"


def objects_of(driver):
    """[(condition, objects)] of a driver, as paths in its folder; without those of tests."""
    text = repo.path("Kbuild").read_text().replace("\\\n", " ")
    places = {source: f"{LINUX.place_of(source)[0]}/{Path(source).name}" for source in LINUX.sources()}
    found = []
    for listed in OBJECTS.finditer(text):
        targets = [places.get(name.removesuffix(".o") + ".c", "") for name in listed["objects"].split()]
        objects = [target.removeprefix(f"{driver.folder}/").removesuffix(".c") + ".o" for target in targets
                   if target.startswith(f"{driver.folder}/")]
        if listed["module"] == driver.name and objects:
            found.append((listed["condition"], objects))
    return found
