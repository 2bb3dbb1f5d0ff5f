# SPDX-License-Identifier: GPL-2.0-or-later
"""What clang-format would do: the C++ tree has a style, and the folders of C are left as they are."""

from hghca_lib import repo

CPP = ("qemu-device/core", "tests/unit", "tests/sim", "tests/fuzz")
C = ("include", "kernel", "providers", "qemu-device/shim", "tests/kunit", "tests/guest", "tests/debug", "tools")
# The settings that hold for each file.
LOOK = """
for file; do
    echo "== $file"
    clang-format --dump-config "$file" | grep -E '^(ColumnLimit|DisableFormat):'
done
"""


def sources(folders):
    return sorted(str(path.relative_to(repo.ROOT)) for folder in folders for pattern in ("*.c", "*.cc", "*.h")
                  for path in repo.path(folder).rglob(pattern))


def check(report, root):
    files = {**dict.fromkeys(sources(C), "true"), **dict.fromkeys(sources(CPP), "false")}
    # One of each folder has the settings of all.
    chosen = {file.rsplit("/", 1)[0]: file for file in files}
    done = root.output(["sh", "-c", LOOK, "sh", *chosen.values()], {"source": repo.ROOT}, "/mnt/source")
    said = dict(part.split("\n", 1) for part in done.stdout.split("== ")[1:])
    wrong = [f"{file}: {said.get(file, 'not read')}" for file in chosen.values()
             if f"DisableFormat:   {files[file]}\n" not in said.get(file, "")
             or files[file] == "false" and "ColumnLimit:     120\n" not in said[file]]
    report.result(not wrong and len(chosen) > 10, "clang-format: C++ has its style, C is left as it is",
                  "\n".join([*wrong, done.stderr[-2000:]]))
