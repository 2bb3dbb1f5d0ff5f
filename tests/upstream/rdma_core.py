# SPDX-License-Identifier: GPL-2.0-or-later
"""The series of `tools/hghca export rdma-core` applies to the newest rdma-core, builds there, and passes its CI's checks."""

import re

from driver import VERDICT
from findings import Exceptions
from hghca_lib import buildroot, lines, series, upstream, upstream_rdma_core
from hghca_lib.export_rdma_core import RDMA_CORE
from hghca_lib.upstream_rdma_core import CHECK_BUILD, CLANG, DEBIAN, GCC, INCOHERENT, LINTIAN, SPARSE, copied, run, tree

# As buildlib/azp-checkpatch of rdma-core has them, but for a summary at the end.
CHECKPATCH = """
perl scripts/checkpatch.pl --no-tree --show-types --emacs --showfile --ignore
PREFER_KERNEL_TYPES,FILE_PATH_CHANGES,EXECUTE_PERMISSIONS,USE_NEGATIVE_ERRNO,CONST_STRUCT
""".split()
FINDING = re.compile(r"^(?P<file>[^:\s]+):\d+: (?:ERROR|WARNING):(?P<kind>[A-Z_0-9]+): ")
# What checkpatch may say besides the exceptions of the suite static, and of which file.
EXCEPTED = (
    # Both sides are constants: of verbs, and of the device.
    ("CONSTANT_COMPARISON", "providers/hghca/(rss.c|wqe.h)"),
    # Device memory, and pages that have to be written to, whatever a compiler knows of their contents.
    ("VOLATILE", "providers/hghca/(buf|dm).c"),
    # hghca_table_slot is an _Atomic(void *), of which there are arrays.
    ("NEW_TYPEDEFS", "providers/hghca/hghca.h"),
)
OURS = re.compile(r"hghca|ernic")
WARNING = re.compile(r"providers/(hghca|ernic)/.*: (warning|error): ")
# A message of a tool, and a symbol that dpkg-gensymbols has found or missed.
PACKAGING = re.compile(r"(warning|error): |^[+-].*@HGHCA_")
SPECS = ("redhat/rdma-core.spec", "suse/rdma-core.spec")
# What openSUSE has, and Debian's rpm has not.
RPM_MACROS = ("--define 'suse_version 1600' --define 'systemd_requires Requires: systemd' "
              "--define 'ldconfig_scriptlets(n:) %nil'")
# Files of packages whose lines in a spec file are ours, and where Debian's packages have them.
PLACES = {"%{_libdir}": "usr/lib/x86_64-linux-gnu", "%{_mandir}": "usr/share/man"}


def ended_well(done):
    assert done.returncode == 0, f"status {done.returncode}: {(done.stdout + done.stderr)[-3000:]}"


def check_sources():
    different = [target for topic in RDMA_CORE.topics for source, target in RDMA_CORE.placed(topic).items()
                 if (tree() / target).read_text() != RDMA_CORE.text_of(source)]
    assert not different, "\n".join(different)
    # The driver's header, of the same numbers, is that of the newest kernel.
    numbers = [series.numbers_of((folder / header).read_text()) for folder, header in (
        (tree(), RDMA_CORE.header), (upstream.tree(), upstream.export.LINUX.header))]
    wrong = {name: [each.get(name) for each in numbers] for name, number in series.DRIVER_IDS.items()
             if [each.get(name) for each in numbers] != 2 * [number]}
    assert not wrong, f"numbers in rdma-core and in Linux: {wrong}"


def check_patches():
    exceptions, bad = Exceptions("checkpatch"), []
    sources = {target: source for topic in RDMA_CORE.topics for source, target in RDMA_CORE.placed(topic).items()}
    for patch in upstream_rdma_core.patches():
        done = buildroot.make().output([*CHECKPATCH, f"/mnt/series/{patch.name}"],
                                       {"tree": lines.source(upstream.LINE), "series": patch.parent}, "/mnt/tree")
        for line in done.stdout.splitlines():
            found = FINDING.match(line)
            if found and not any(found["kind"] == kind and re.fullmatch(file, found["file"]) for kind, file in EXCEPTED) and \
                    not exceptions.cover(found["kind"], line.replace(found["file"], sources.get(found["file"], ""))):
                bad.append(line)
        assert VERDICT.search(done.stdout), f"{patch.name}: {done.stdout[-1000:]}{done.stderr}"
    assert not bad, "\n".join(bad)


def check_gcc():
    with copied() as (core, build):
        done = run(GCC, core, build)
        ended_well(done)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "warning: " in line and "libibumad" not in line]
        assert not said, "\n".join(said)
        checked = run(CHECK_BUILD, core, build)
        ended_well(checked)
        for name in ("providers-ernic-static-out", "providers-hghca-static-out", "hghca-static-out", "hghca-shared-out"):
            assert f"Compile and link {name}" in checked.stdout, f"check-build has not linked {name}"
        assert re.search(r"Header C\+\+ check for \S+/infiniband/hghcadv\.h", checked.stdout), "hghcadv.h is not checked"


def check_clang():
    with copied() as (core, build):
        done = run(CLANG, core, build)
        ended_well(done)
        said = [line for line in (done.stdout + done.stderr).splitlines() if WARNING.search(line)]
        assert not said, "\n".join(said)


def check_sparse():
    with copied() as (core, build):
        done = run(SPARSE, core, build)
        ended_well(done)
        said = [line for line in (done.stdout + done.stderr).splitlines() if WARNING.search(line)]
        assert not said, "\n".join(said)
        assert (build / "lib/libhghca.so.1").exists(), "nothing was built"


def check_incoherent():
    with copied() as (core, build):
        ended_well(run(INCOHERENT, core, build))
        found = {name for name in upstream_rdma_core.targets(build) if OURS.search(name)}
        assert not {name for name in found if name.startswith(("providers/", "lib/"))}, found
        assert any(name.startswith("providers/rxe/") for name in upstream_rdma_core.targets(build)), "no provider at all"


def check_debian():
    """The packages, which have each file that is installed and each symbol, and what lintian and the spec files say."""
    with copied() as (core, build):
        done = run(DEBIAN, core, build)
        ended_well(done)
        said = [line for line in (done.stdout + done.stderr).splitlines() if PACKAGING.search(line) and OURS.search(line)]
        assert not said, "\n".join(said)
        installed = build / "rdma-core/debian/tmp"
        for spec in SPECS:
            check_spec(core / spec, installed)
            ended_well(run(f"rpmspec {RPM_MACROS} --parse /mnt/tree/{spec} > /dev/null", core, build))
        lintian = run(LINTIAN, core, build)
        findings = [line for line in lintian.stdout.splitlines() if OURS.search(line)]
        assert lintian.stdout and not findings, "\n".join(findings) or lintian.stderr
        listed = run("for deb in /mnt/build/*.deb; do dpkg -c $deb; done", core, build).stdout
        files = sorted(line.split()[5].rpartition("/")[2] for line in listed.splitlines() if OURS.search(line))
        wanted = {"hghca.driver", "ernic.driver", "libhghca.so.1", "libhghca.so", "libhghca.a", "libhghca.pc", "hghcadv.h",
                  "hghcadv.7.gz"}
        assert wanted <= set(files), f"the packages have {files}"


def check_spec(spec, installed):
    """Each of our lines with a path in a spec file names a file."""
    paths = [line for line in spec.read_text().splitlines() if line.startswith("%{_") and OURS.search(line)]
    assert len(paths) == 2, f"{spec}: {paths}"
    for path in paths:
        for macro, place in PLACES.items():
            path = path.replace(macro, place)
        assert list(installed.glob(path)), f"{spec} names {path}, which is not installed"


CHECKS = (
    ("sources", "the tree has all sources, and the ids of the kernel's tree", check_sources),
    ("checkpatch", "checkpatch, as rdma-core's CI runs it, finds nothing", check_patches),
    ("gcc", "gcc builds all of it, shared and static, without a warning, and check-build finds nothing", check_gcc),
    ("clang", "clang builds the providers without a warning", check_clang),
    ("sparse", "sparse finds nothing in the providers", check_sparse),
    ("incoherent", "a platform whose DMA is not coherent builds neither provider", check_incoherent),
    ("packages", "Debian's packages have each file and symbol, lintian finds nothing, and the spec files name them", check_debian),
)


def check(report, words):
    """The checks in whose word one of the words occurs, or all."""
    report.run(f"the series applies to rdma-core {upstream_rdma_core.VERSION}, patch by patch, without fuzz", tree)
    if not report.failed:
        for word, name, test in CHECKS:
            if not words or any(each in word for each in words):
                report.run(f"rdma-core: {name}", test)
