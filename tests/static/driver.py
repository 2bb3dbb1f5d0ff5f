# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver as the kernel's own checkers see it: W=1, sparse, checkpatch --strict, coccicheck."""

import re
import shutil
import tempfile
from pathlib import Path

import layers
from findings import Exceptions
from hghca_lib import cache, module, repo, tiers
from verdicts import Verdicts

# Everything is checked as a whole, however long it takes.
# Small compile tests, no sources of the driver.
PROBES = repo.path("kernel/compat/probes")
WHOLE = tiers.current() == tiers.ALL
# C=2 has sparse read all files, also those that have been compiled.
CHECKED_BUILD = ["make", "-j2", "M=/mnt/module", "C=2", "CF=-D__CHECK_ENDIAN__", *module.arguments()]
STYLE_FINDING = re.compile(r"^\S+:\d+: (?:ERROR|WARNING|CHECK):([A-Z_0-9]+): ")
# This ends every whole report of checkpatch.
VERDICT = re.compile(r"^total: \d+ errors, .* [1-9]\d* lines checked$", re.MULTILINE)
CHECKPATCH = ["perl", "/mnt/scripts/checkpatch.pl", "--strict", "--no-tree", "--emacs", "--show-types", "-f"]
SCRIPTS = ["checkpatch.pl", "spelling.txt", "const_structs.checkpatch", "coccinelle"]
UNPACK = """
set -e
mkdir /tmp/source
tar -xJf /usr/src/linux-source-6.12.tar.xz -C /tmp/source --strip-components=2 "$@"
mv /tmp/source/* /mnt/out/
"""
# Coccinelle expands no macro that it does not know.
MACROS = "tests/static/coccinelle-macros.h"
# Each semantic patch with the options it asks for itself, as `make coccicheck` runs it.
COCCICHECK = f"""
printf '%s\\n' "$@" | xargs -P2 -n1 sh -c '
    name=$0
    patch=$(find /mnt/scripts/coccinelle -name $name.cocci)
    options=$(sed -n "s,^// *Options: *,,p" $patch | sed "s,--very-quiet,,")
    spatch --macro-file {MACROS} -D report --no-show-diff --cocci-file $patch $options --dir kernel -I include -I kernel \\
        > /mnt/out/$name.out 2> /mnt/out/$name.log
    echo $? > /mnt/out/$name.status'
spatch --macro-file {MACROS} --parse-c kernel > /mnt/out/parse 2>&1
"""
# They are written in OCaml, of which the build root has no compiler; the first is about another driver.
WITHOUT = {"check_bq27xxx_data", "badzero"}
# The folders of patches about memory, loops, locks, pointers and conditions; with all tests, those about interfaces and
# style run too. unsigned_lesser_than_zero and minmax, which is of style, take longer than the other seventy together.
FOLDERS = ["."] if WHOLE else ["free", "iterators", "locks", "null", "tests"]
LONG = set() if WHOLE else {"unsigned_lesser_than_zero"}
# How coccinelle names a file it was given: searched, or left alone as no word of the patch is in it.
READ = re.compile(r"^(?:HANDLING|Skipping): (\S+)", re.MULTILINE)
PARSED = re.compile(r"^NB total files = (\d+); perfect = (\d+); pbs = 0; timeout = 0;", re.MULTILINE)
COCCI_FINDING = re.compile(r"^\S+:\d+")


def check(report, root):
    build_with_checks(report, root)
    folder = scripts(root)
    check_style(report, root, folder)
    check_semantics(report, root, folder)


def check_changed(report, root, changed):
    """A build with all warnings and sparse when files of the driver have changed, and checkpatch of those."""
    sources = [source for source in style_sources() if str(source.relative_to(repo.ROOT)) in changed]
    if sources:
        build_with_checks(report, root)
        check_style_of(report, root, scripts(root), sources, Exceptions("checkpatch"))


def build_with_checks(report, root):
    """A build of everything with all warnings, each file also read by sparse; layers.py reads its objects.

    But with all tests, it goes on from the build of the modules that guests load, which keeps no object if the compiler
    has warned. The objects of a build without any finding are kept in the cache, so the same sources are not built again.
    """
    sources = [str(source.relative_to(repo.ROOT)) for source in sorted(repo.path("kernel").rglob("*.c"))
               if PROBES not in source.parents]
    # What counts as no finding decides as well.
    key = cache.key(module.module_key(root), str(WHOLE), *CHECKED_BUILD, module.BUILD_STEP.pattern)
    said, missed = [], []
    try:
        layers.check(report, root, cache.make("checked-build", key, lambda folder: checked_build(root, sources, folder),
                                              128 * cache.MIB, "kernel module, with checks"))
    except Findings as findings:
        said, missed = findings.said, findings.missed
    report.result(not said, "kernel: no warning with W=1, none from sparse", "\n".join(said))
    report.result(sources and not missed, f"kernel: sparse has read all {len(sources)} files", f"not read: {missed}")


class Findings(Exception):
    """What compiler and sparse said of the driver, as lines, and the sources that sparse has not read."""

    def __init__(self, said, missed):
        super().__init__()
        self.said = said
        self.missed = missed


def checked_build(root, sources, folder):
    """Leave the objects of a build without findings in a folder, or raise the Findings."""
    with tempfile.TemporaryDirectory() as place:
        if not WHOLE:
            module.copy_work(root, place)
        cache.sync_tree(repo.ROOT, module.source_paths(), Path(place))
        done = root.output([*CHECKED_BUILD, "-C", f"/usr/lib/modules/{root.kernel_version()}/build", "modules"],
                           {"module": place})
        lines = (done.stdout + done.stderr).splitlines()
        said = [line for line in lines if line and not module.BUILD_STEP.match(line)]
        read_by_sparse = {line.split()[-1] for line in lines if re.match(r"^\s+CHECK ", line)}
        missed = [source for source in sources if not any(line.endswith(f"/{source}") for line in read_by_sparse)]
        if done.returncode or said or missed:
            raise Findings(said or [f"make ended with status {done.returncode}"] * bool(done.returncode), missed)
        for source in sources:
            copy = (folder / source).with_suffix(".o")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy((Path(place) / source).with_suffix(".o"), copy)


def scripts(root):
    """The folder with checkpatch, its word lists and the semantic patches, from the kernel's source package."""
    def build(folder):
        names = [f"linux-source-6.12/scripts/{name}" for name in SCRIPTS]
        root.run(["sh", "-c", UNPACK, "sh", *names], cache.log_path("checkers"), "kernel checkers",
                 "remove the build root and run the same command again", {"out": folder})

    return cache.make("checkers", cache.key(root.key, UNPACK, *SCRIPTS), build, 8 * cache.MIB, "kernel checkers")


def check_style(report, root, folder):
    exceptions = Exceptions("checkpatch")
    check_style_of(report, root, folder, style_sources(), exceptions)
    exceptions.report(report)


def style_sources():
    return [repo.path("Kbuild"), *sorted(path for name in ("kernel", "include")
                                         for path in repo.path(name).rglob("*.[ch]"))]


def check_style_of(report, root, folder, sources, exceptions):
    names = {str(source.relative_to(repo.ROOT)): source for source in sources}
    verdicts = Verdicts("checkpatch", {name: cache.key(folder.name, *CHECKPATCH, name, source)
                                       for name, source in names.items()})
    clean = set()
    for name in names:
        passed = name in verdicts.known
        if not passed:
            done = root.output([*CHECKPATCH, name], {"scripts": folder, "source": repo.ROOT}, "/mnt/source")
            findings = [(match.group(1), line) for line in done.stdout.splitlines()
                        if (match := STYLE_FINDING.match(line))]
            bad = [line for kind, line in findings if not exceptions.cover(kind, line)]
            passed = VERDICT.search(done.stdout) and not bad
            clean |= {name} if passed and not findings else set()
        report.result(passed, f"checkpatch --strict: {name}", "" if passed else "\n".join(bad) or done.stdout + done.stderr)
    verdicts.keep(clean)
    verdicts.note(report)


def check_semantics(report, root, folder):
    """The kernel's semantic patches on every file of the driver."""
    exceptions = Exceptions("coccicheck")
    patches = sorted(path.stem for name in FOLDERS for path in (folder / "coccinelle" / name).rglob("*.cocci")
                     if path.stem not in WITHOUT | LONG)
    sources = {str(path.relative_to(repo.ROOT)) for path in repo.path("kernel").rglob("*.c")}
    tree = cache.tree_key(repo.ROOT, repo.path("kernel"), repo.path("include"))
    verdicts = Verdicts("coccicheck", {"the driver": cache.key(root.key, folder.name, COCCICHECK, repo.path(MACROS), *patches, tree)})
    bad, excepted, failed, unread = [], [], [], []
    if verdicts.unknown():
        findings, failed, unread = run_semantics(root, folder, patches, sources)
        excepted = [line for name, line in findings if exceptions.cover(name, line)]
        bad = [line for _, line in findings if line not in excepted]
    report.result(not bad, f"coccicheck: none of {len(patches)} semantic patches finds anything", "\n".join(bad))
    report.result(patches and not failed, "coccicheck: every semantic patch ran to its end", "\n".join(failed))
    report.result(sources and not unread, f"coccicheck: all {len(sources)} files parsed without a gap and tried by each",
                  "\n".join(unread))
    exceptions.report(report)
    verdicts.keep([] if bad or excepted or failed or unread else ["the driver"])
    verdicts.note(report)


def run_semantics(root, folder, patches, sources):
    """What the patches find, as (patch, line); which did not run to their end; which files were not read, and by which."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        root.output(["sh", "-c", COCCICHECK, "sh", *patches], {"scripts": folder, "source": repo.ROOT, "out": out}, "/mnt/source")
        parsed = PARSED.search(read(out / "parse"))
        findings, failed, unread = [], [], []
        for name in patches:
            said, log = (read(out / f"{name}.{kind}") for kind in ("out", "log"))
            findings += [(name, line) for line in said.splitlines() if COCCI_FINDING.match(line)]
            if read(out / f"{name}.status").strip() != "0":
                failed.append(f"{name}: {log[-500:]}")
            unread += [f"{name}: {missed}" for missed in sources - set(READ.findall(log))]
    if not parsed or int(parsed.group(2)) != len(sources):
        unread.append(str(parsed and parsed.group(0)))
    return findings, failed, unread


def read(path):
    """A file's text, "" when it is not there."""
    return path.read_text(errors="replace") if path.is_file() else ""
