# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca export rdma-core DIR`: the providers as a series of patches for the tree of rdma-core.

The sources are those of the checkout. A provider's folder of the tree also has the headers of include/ that the provider
reads. The rest are lines in files that the tree has: of the build, and of the packages of the distributions.
"""

import re

from . import rdma_core, repo, series
from .errors import UsageError
from .series import Insert, Topic

HGHCA, ERNIC = "providers/hghca", "providers/ernic"
# Headers of the interface that the provider of the HCA does not read, and their includes, are left out.
INTERFACE, PARTS = "include/hghca_hw.h", "include/hghca"
UNREAD = ("segment", "qp", "eqe", "counters", "rsnic_caps")
LEFT_OUT = {
    "providers/compat/*": "what an older rdma-core lacks",
    "*/.clang-format": "the checkout's",
    "include/hghca_wire.h": "packets, which the device sends",
    "include/loopback_hw.h": "no RDMA device",
    "include/ernic_hw.h": "the provider has two lines of it",
    **{f"{PARTS}/{name}.h": "the driver's" for name in UNREAD},
}
# Of the registers of an ERNIC, of which no process maps one, the provider needs what it knows a device by.
ERNIC_HEADER = "include/ernic_hw.h"
ERNIC_DEFINES = ("ERNIC_PCI_VENDOR_ID", "ERNIC_PCI_DEVICE_ID")
REPLACED = (
    *series.DOCUMENTS[:1],
    ("providers/hghca/hghca.c", "RDMA_DRIVER_UNKNOWN", "RDMA_DRIVER_HGHCA"),
    ("providers/ernic/ernic.c", "RDMA_DRIVER_UNKNOWN", "RDMA_DRIVER_ERNIC"),
    ("providers/hghca/libhghca.map", "Documentation/versioning.md of rdma-core", "Documentation/versioning.md document"),
    ("providers/hghca/man/*",
     "Section 9 of *docs/reference/rsnic.rst*, which comes with the driver, describes the packets.\n\n", ""),
)
IN_KERNEL = re.compile(r"#ifdef __KERNEL__\n(?:.*\n)*?#else\n(?P<user>(?:.*\n)*?)#endif\n")
# rdma-core writes the licence of a source as the kernel does.
LICENCE = re.compile(r"\A/\* (SPDX-License-Identifier: .*) \*/\n")
INCLUDED = re.compile(r"#include <hghca/(?P<name>\w+)\.h>\n")
RELEASE = re.compile(r'^set\(PACKAGE_VERSION "(?P<release>\d+)', re.MULTILINE)
# A version of libhghca.map, and its functions.
VERSIONS = re.compile(r"^(?P<version>HGHCA_[\d.]+) \{\n\tglobal:\n(?P<names>(?:\t\t\w+;\n)+)", re.MULTILINE)
COVER = """\
Add providers for the JingZhao HCA and the ERNIC

This series adds two providers. hghca is for the JingZhao HCA and for RSNIC,
RDMA adapters for RoCE v2. It is a library as well, with direct verbs for what
RSNIC has beyond the verbs. ernic is for the ERNIC and the ETRNIC, embedded
RDMA network interfaces.

The drivers of the kernel are hghca and ernic. The first patch has their
headers and their driver ids.
"""


def listed(place, neighbour, *names):
    """The line of each name, behind the neighbour's, in one of the lists of rdma_core.py."""
    file, line = place
    return Insert(file, re.escape(line % neighbour), "".join(line % name for name in names))


def behind(file, line, text):
    """Text behind the first line that starts so."""
    return Insert(file, rf"(?m)^{re.escape(line)}.*\n", text)


def before(file, line, text):
    """Text before the first line that starts so."""
    return Insert(file, rf"(?m)^(?={re.escape(line)})", text)


def maintained(title, folder, following):
    return before("MAINTAINERS", following,
                  f"{title}\nM:\t@NAME@ <@EMAIL@>\nS:\tMaintained\nF:\t{folder}/\n\n")


HEADERS, ABI_WRAPPERS = rdma_core.LIST_OF_HEADERS, "rdma_kernel_provider_abi(\n"
ERNIC_TEXT, HGHCA_TEXT = "ERNIC and ETRNIC embedded RDMA network interfaces", "JingZhao HCAs and RSNIC"
CONTROL, COPYRIGHT, SYMBOLS = "debian/control", "debian/copyright", "debian/ibverbs-providers.symbols"
OVERRIDES, LIBRARIES = "debian/ibverbs-providers.lintian-overrides", "debian/ibverbs-providers.install"
DEV = "debian/libibverbs-dev.install"
REDHAT, SUSE, BOOT = "redhat/rdma-core.spec", "suse/rdma-core.spec", "kernel-boot/rdma-description.rules"
VERSIONED = "%{version}-%{release}"
SUSE_REQUIRES = "Requires:       %%{%s_lname} = %%{version}-%%{release}\n"
DEBIAN = (
    behind(CONTROL, "  - erdma: ", f"  - ernic: {ERNIC_TEXT}\n"),
    behind(CONTROL, "  - hfi1verbs: ", f"  - hghca: {HGHCA_TEXT}\n"),
    Insert(CONTROL, "Provides: libefa1, ", "libhghca1, "),
    before(COPYRIGHT, "Files: providers/hfi1verbs/*",
           "Files: providers/ernic/*\nCopyright: 2026, @NAME@\nLicense: BSD-MIT or GPL-2\n\n"),
    before(COPYRIGHT, "Files: providers/hns/*", "Files: providers/hghca/*\nCopyright: 2026, @NAME@\nLicense: BSD-MIT or GPL-2\n\n"),
    before(SYMBOLS, "libhns.so.1 ", "libhghca.so.1 ibverbs-providers #MINVER#\n* Build-Depends-Package: libibverbs-dev\n@SYMBOLS@"),
    Insert(OVERRIDES, "# libefa, ", "libhghca, "),
    Insert(OVERRIDES, "sonames libefa1 ", "libhghca1 "),
    Insert("debian/rules", r"sed -i '/efa\\\|", r"hghca\|"),
    behind(LIBRARIES, "usr/lib/*/libefa.so.", "usr/lib/*/libhghca.so.*\n"),
    behind(DEV, "usr/include/infiniband/efadv.h", "usr/include/infiniband/hghcadv.h\n"),
    behind(DEV, "usr/lib/*/libefa.so", "usr/lib/*/libhghca.a\nusr/lib/*/libhghca.so\n"),
    behind(DEV, "usr/lib/*/pkgconfig/libefa.pc", "usr/lib/*/pkgconfig/libhghca.pc\n"),
    behind(DEV, "usr/share/man/man7/efadv.7", "usr/share/man/man7/hghcadv.7\n"),
)
FEDORA = (
    behind(REDHAT, "Obsoletes: libhfi1 <", f"Provides: libhghca = {VERSIONED}\nObsoletes: libhghca < {VERSIONED}\n"),
    behind(REDHAT, "- liberdma: ", f"- libernic: {ERNIC_TEXT}\n"),
    behind(REDHAT, "- libhfi1: ", f"- libhghca: {HGHCA_TEXT}\n"),
    behind(REDHAT, "%{_mandir}/man7/efadv*", "%{_mandir}/man7/hghcadv*\n"),
    behind(REDHAT, "%{_libdir}/libefa.so.*", "%{_libdir}/libhghca.so.*\n"),
)
OPENSUSE = (
    behind(SUSE, "%define efa_so_major ", "%define hghca_so_major  1\n"),
    behind(SUSE, "%define  efa_lname ", "%define  hghca_lname  libhghca%{hghca_so_major}\n"),
    *(Insert(SUSE, rf"(?s)\n%package {package}\n.*?{re.escape(SUSE_REQUIRES % 'efa')}", SUSE_REQUIRES % "hghca")
      for package in ("devel", "-n     libibverbs")),
    behind(SUSE, "- libefa: ", f"- libernic: {ERNIC_TEXT}\n"),
    behind(SUSE, "- libhfi1: ", f"- libhghca: {HGHCA_TEXT}\n"),
    before(SUSE, "%package -n %hns_lname",
           "%package -n %hghca_lname\nSummary:        HGHCA runtime library\nGroup:          System/Libraries\n\n"
           "%description -n %hghca_lname\nThis package contains the hghca runtime library.\n\n"),
    behind(SUSE, "%ldconfig_scriptlets -n %efa_lname", "%ldconfig_scriptlets -n %hghca_lname\n"),
    behind(SUSE, "%{_mandir}/man7/efadv*", "%{_mandir}/man7/hghcadv*\n"),
    before(SUSE, "%files -n %hns_lname", "%files -n %hghca_lname\n%{_libdir}/libhghca*.so.*\n\n"),
)
TOPICS = (
    Topic("kernel-headers: Add the headers of hghca and ernic",
          "They are those of the drivers. The drivers' ids are new as well: the kernel\n"
          "refuses an ioctl of a provider with another id.",
          {"include/uapi/rdma/*": "kernel-headers/rdma"},
          inserts=(listed(HEADERS, "erdma", "ernic", "hghca"),
                   Insert(HEADERS[0], f"(?s){re.escape(ABI_WRAPPERS)}.*?{re.escape(HEADERS[1] % 'erdma')}", HEADERS[1] % "hghca")),
          ids=("RDMA_DRIVER_HGHCA", "RDMA_DRIVER_ERNIC")),
    Topic("libhghca: Add the hardware interface",
          "These headers define doorbells, descriptors and completions, and the numbers\n"
          "of contexts and mailboxes that the ABI of the driver has as well. The driver\n"
          "has the same headers.",
          {INTERFACE: HGHCA, f"{PARTS}/*": f"{HGHCA}/hghca"}),
    Topic("libhghca: Add a provider for the JingZhao HCA",
          "The provider posts work requests and polls completions without the kernel.\n"
          "libhghca is also a library for programs: direct verbs create partitions and\n"
          "post the requests of RSNIC that the verbs do not have.",
          {"providers/hghca/*": HGHCA},
          inserts=(listed(rdma_core.LIST_OF_FOLDERS, "erdma", "hghca"),
                   listed(rdma_core.LIST_OF_STATIC, "hfi1verbs", "hghca"),
                   maintained("HGHCA USERSPACE PROVIDER (for hghca.ko)", HGHCA, "HNS USERSPACE PROVIDER"),
                   behind("README.md", " - hfi1.ko", " - hghca.ko\n"))),
    Topic("libhghca: Add a manual page of the direct verbs",
          "It has all functions, as they are used together.",
          {"providers/hghca/man/*": f"{HGHCA}/man"},
          inserts=(listed(rdma_core.LIST_OF_FOLDERS, "hghca", rdma_core.MANUAL),)),
    Topic("libernic: Add a provider for ERNIC and ETRNIC",
          "A descriptor of the device names memory by its bus address, so no process\n"
          "maps a queue: all verbs are commands to the kernel.",
          {"providers/ernic/*": ERNIC},
          inserts=(listed(rdma_core.LIST_OF_FOLDERS, "erdma", "ernic"),
                   listed(rdma_core.LIST_OF_STATIC, "erdma", "ernic"),
                   maintained("ERNIC USERSPACE PROVIDER (for ernic.ko)", ERNIC, "HF1 USERSPACE PROVIDER"),
                   behind("README.md", " - erdma.ko", " - ernic.ko\n"))),
    Topic("kernel-boot: Mark hghca and ernic as hardware with RoCE",
          "The modules of users of RoCE are loaded for them.",
          inserts=(before(BOOT, 'DRIVERS=="hns"', "".join(f'DRIVERS=="{name}", ENV{{ID_RDMA_ROCE}}="1"\n'
                                                         for name in rdma_core.PROVIDERS)),)),
    Topic("debian: Add libhghca and libernic",
          "libhghca is a shared library with symbols of its own. Architectures whose DMA\n"
          "is not coherent do not build it.",
          inserts=DEBIAN),
    Topic("redhat: Add libhghca and libernic", "Both are in the package of libibverbs.", inserts=FEDORA),
    Topic("suse: Add libhghca and libernic",
          "A shared library of a provider has a package there. The provider libernic is\n"
          "in the package of libibverbs.",
          inserts=OPENSUSE),
)


class RdmaCore(series.Project):
    """The providers in the tree of rdma-core."""

    def check(self, tree):
        missing = [file for file in self.files() if not (tree / file).is_file()]
        found = None if missing else RELEASE.search((tree / "CMakeLists.txt").read_text())
        if not found:
            raise UsageError(f"{tree} is not a tree of rdma-core: it lacks {missing[0] if missing else 'its version'}",
                             "name the folder with the sources of rdma-core")
        if int(found["release"]) < int(rdma_core.NEWEST):
            raise UsageError(f"{tree} is older than rdma-core {rdma_core.NEWEST}, which the providers are written for",
                             f"use a tree of rdma-core {rdma_core.NEWEST} or later")
        present = [folder for folder in (HGHCA, ERNIC) if (tree / folder).exists()]
        if present:
            raise UsageError(f"{tree} has {present[0]} already", "check out a branch without the providers")

    def files(self):
        return sorted({"CMakeLists.txt", *super().files()})

    def changes(self, topic, tree, person):
        found = super().changes(topic, tree, person)
        if SYMBOLS in found:
            release = RELEASE.search((tree / "CMakeLists.txt").read_text())["release"]
            found[SYMBOLS] = found[SYMBOLS].replace("@SYMBOLS@", symbols(release))
        return found

    def text_of(self, source):
        text = IN_KERNEL.sub(lambda match: match["user"], super().text_of(source))
        text = text.replace('#include "ernic_hw.h"\n', defines(ERNIC_HEADER, ERNIC_DEFINES))
        if source.endswith(".c"):
            text = LICENCE.sub(r"// \1\n", text)
        return INCLUDED.sub(lambda match: included(source, match["name"]), text)


def included(source, name):
    """What takes the place of #include <hghca/NAME.h>: a path from the folder of the file."""
    if name in UNREAD:
        return ""
    return f'#include "{name}.h"\n' if source.startswith(f"{PARTS}/") else f'#include "hghca/{name}.h"\n'


def defines(header, names):
    """The lines of a header of the checkout that define the names."""
    text = repo.path(header).read_text()
    return "".join(re.search(rf"^#define {name}\b.*\n", text, re.MULTILINE)[0] for name in names)


def symbols(release):
    """The symbols of libhghca as Debian lists them, each with the release that it came with."""
    found = list(VERSIONS.finditer(repo.path("providers/hghca/libhghca.map").read_text()))
    names = [(each["version"], name) for each in found for name in (each["version"], *re.findall(r"\w+", each["names"]))]
    return "".join(f" {name}@{version} {release}\n" for version, name in names)


RDMA_CORE = RdmaCore("tools/hghca_lib/export_rdma_core.py", COVER, TOPICS, ("providers", "include"), LEFT_OUT, REPLACED,
                     "kernel-headers/rdma/ib_user_ioctl_verbs.h")
