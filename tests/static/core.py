# SPDX-License-Identifier: GPL-2.0-or-later
"""The device core as clang-tidy (with .clang-tidy of this checkout) and cppcheck see it."""

import re
from pathlib import Path

from findings import Exceptions
from hghca_lib import cache, repo, tiers
from verdicts import Verdicts

CORE = "qemu-device/core"
# As CMakeLists.txt compiles it.
COMPILE = ["-std=c++20", "-Iinclude", f"-I{CORE}", "-O2"]
# Each argument is a number and the files that are read as one. Most of the time goes into the headers, which several
# files then share; checks that look at the main file alone see a file that is read by itself.
TIDY = """
[ $# -gt 0 ] || exit 0
printf '%s\\n' "$@" | xargs -r -P2 -d '\\n' -n1 sh -c '
    set -- $0
    batch=$1
    shift
    main=$1
    if [ $# -gt 1 ]; then
        main=/tmp/batch$batch.cc
        printf "#include \\"%s\\" // NOLINT(bugprone-suspicious-include)\\n" "$@" > $main
    fi
    clang-tidy --quiet --config-file=.clang-tidy "--checks=$CHECKS" $main -- """ + " ".join(COMPILE) + """ -I. \\
        > /tmp/$batch.tidy 2>&1
    echo "$batch $?" >> /tmp/statuses'
cat /tmp/*.tidy
echo "== statuses"
cat /tmp/statuses
"""
BATCH = 10
# What is taken from the checks of .clang-tidy: the analyzer, which takes half the time, runs apart.
PASSES = {
    "clang-tidy": "-clang-analyzer-*",
    "clang-analyzer": "-bugprone-*,-cert-*,-concurrency-*,-misc-*,-performance-*,-portability-*",
}
TIDY_FINDING = re.compile(r"^\S+:\d+:\d+: (?:warning|error): .*\[[\w.,-]+\]$")
CPPCHECK = ["cppcheck", "-j2", "--cppcheck-build-dir=/mnt/kept", "--enable=warning,performance,portability",
            "--check-level=exhaustive", "--std=c++20", "--language=c++", "-U__KERNEL__", "-Iinclude", f"-I{CORE}",
            "--template={file}:{line}: {id}: {severity}: {message}", CORE]
CPPCHECK_FINDING = re.compile(r"^\S+:\d+: (\w+): (?:error|warning|performance|portability|style): ")
CPPCHECK_READ = re.compile(r"^Checking (\S+?)(?: \.\.\.|: )", re.MULTILINE)


def check(report, root):
    source = {"source": repo.ROOT}
    files = sorted(str(path.relative_to(repo.ROOT)) for path in repo.path(CORE).rglob("*.cc"))
    headers = {str(path.relative_to(repo.ROOT)) for path in repo.path(CORE).rglob("*.h")}
    included = check_includes(report, root, source, files, headers)
    included = {name: included.get(name, [name]) for name in files}
    if tiers.current() == tiers.ALL:
        for checker in PASSES:
            check_tidy(report, root, source, included, checker)
        check_cppcheck(report, root, source, files)
    else:
        check_tidy(report, root, source, included, "clang-tidy", BATCH)


def check_changed(report, root, changed):
    """Both passes over the files of the core among those changed; a header is read with the file of its name."""
    names = {re.sub(r"\.h$", ".cc", name) for name in changed if name.startswith(f"{CORE}/")}
    files = sorted(name for name in names if name.endswith(".cc") and (repo.ROOT / name).is_file())
    if files:
        source = {"source": repo.ROOT}
        included = read_with(root.output(["g++", *COMPILE, "-MM", *files], source, "/mnt/source"))
        for checker in PASSES:
            check_tidy(report, root, source, included, checker)


def check_includes(report, root, source, files, headers):
    """A header is read by way of the file that includes it; so each must be included. What each file is read with."""
    done = root.output(["g++", *COMPILE, "-MM", *files], source, "/mnt/source")
    missed = sorted(headers - set(done.stdout.split()))
    report.result(done.returncode == 0 and not missed, f"core: all {len(headers)} headers are read with its files",
                  f"not included: {missed}\n{done.stderr}")
    return read_with(done)


def read_with(done):
    """{file: it and its headers}, from what `g++ -MM` says of several files."""
    rules = done.stdout.replace("\\\n", "").splitlines()
    return {names[0]: names for names in (rule.partition(":")[2].split() for rule in rules)}


def check_tidy(report, root, source, included, checker, batch=1):
    """One of PASSES over the files, `batch` of a folder as one: included is {file: it and its headers}."""
    checks = PASSES[checker]
    verdicts = Verdicts(checker, {
        name: cache.key(root.key, TIDY, str(batch), checks, repo.path(".clang-tidy"), *map(repo.path, names))
        for name, names in included.items()})
    batches = batches_of(verdicts.unknown(), batch)
    done = root.output(["sh", "-c", TIDY, "sh", *(f"{number} {' '.join(batches[number])}" for number in batches)],
                       source, "/mnt/source", {"CHECKS": checks})
    said, _, statuses = done.stdout.partition("== statuses\n")
    ended = dict(line.rsplit(" ", 1) for line in statuses.splitlines())
    findings = sorted({line for line in said.splitlines() if TIDY_FINDING.match(line)})
    report.result(not findings, f"{checker}: no finding in the core", "\n".join(findings))
    wrong = {number: ended.get(number, "not read") for number in batches if ended.get(number) != "0"}
    report.result(not wrong, f"{checker}: all {len(included)} files read to their end",
                  "\n".join([*(f"{' '.join(batches[number])}: {wrong[number]}" for number in wrong),
                             said[-2000:], done.stderr]))
    if not findings:
        verdicts.keep({name for number, names in batches.items() if number not in wrong for name in names})
    verdicts.note(report)


def batches_of(files, most):
    """{number: files of one folder, `most` of them}; names that only one file may have are in the core's folder."""
    folders = {}
    for name in files:
        folder = str(Path(name).parent)
        folders.setdefault(name if folder == CORE else folder, []).append(name)
    batches = [names[at:at + most] for names in folders.values() for at in range(0, len(names), most)]
    return {str(number): names for number, names in enumerate(batches)}


def check_cppcheck(report, root, source, files):
    """cppcheck of all files at once; it keeps by itself what it has found in those that have not changed."""
    exceptions = Exceptions("cppcheck")
    kept = cache.root() / "verdicts" / f"cppcheck-{cache.key(root.key, *CPPCHECK)}"
    kept.mkdir(parents=True, exist_ok=True)
    done = root.output(CPPCHECK, {**source, "kept": kept}, "/mnt/source")
    said = (done.stdout + done.stderr).splitlines()
    bad = [line for line in said if (match := CPPCHECK_FINDING.match(line))
           and not exceptions.cover(match.group(1), line)]
    missed = sorted(set(files) - set(CPPCHECK_READ.findall(done.stdout)))
    report.result(not bad, "cppcheck: no finding in the core", "\n".join(bad))
    report.result(done.returncode == 0 and not missed, f"cppcheck: all {len(files)} files read",
                  f"not read: {missed}\n{done.stderr[-2000:]}")
    exceptions.report(report)
