# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages of Debian's kernels of other lines than the build root's: headers, to build the drivers, kernels to boot, sources.

A line is a stable series of Linux, such as 6.1. With each update of a line Debian's packages get another name, so a line
is asked for, and the newest packages that the mirror has are taken. NEWEST asks for those of the highest version. The
headers decide which: they are fetched first, and the kernel to boot is the one that they are of. The package of the sources has the line in its name.
"""

import dataclasses
import os
import re
from pathlib import Path

from . import buildroot, cache
from .errors import ToolError

# The line of the build root's kernel.
STOCK = "6.12"
# The suite of Debian that has one of the other lines.
SUITES = {"6.1": "bookworm", "7.3": "trixie-backports"}
# Not a line: the highest version that one of these suites has. It moves on by itself.
NEWEST = "newest"
SUITES_OF_NEWEST = ("trixie-backports", "unstable", "experimental")
KIND = "kernel-headers"
SOURCE_KIND = "kernel-source"
# The package's archive with all sources, which lies beside the folder of those that are read.
ARCHIVE = "tree.tar.xz"
CURE = (f"set HGHCA_MIRROR to a mirror that has it, or use another kernel: --kernel {STOCK}, "
        "or the path of a bzImage")
# Where a build sees the folder of a line; the packages name each other's files below it.
PLACE = "/mnt/kernel"
APT = """
Dir::Etc::SourceList "/mnt/apt/sources.list";
Dir::Etc::SourceParts "/tmp/parts";
Dir::State::Lists "/tmp/lists";
Dir::Cache "/tmp/cache";
Acquire::Languages "none";
APT::Sandbox::User "root";
"""
# The index of a suite that nobody releases may be older than its own date allows.
UNDATED = """
echo 'Acquire::Check-Valid-Until "false";' >> /mnt/apt/apt.conf
"""
UPDATE = """
set -e
mkdir -p /tmp/lists/partial /tmp/cache/archives/partial /tmp/parts
export APT_CONFIG=/mnt/apt/apt.conf
apt-get update --error-on=any
"""
# fetch PACKAGE PREFIX...: unpack a package, and those of the prefixes that it depends on, in the current folder.
FETCH = r"""
fetch() {
    package=$1
    shift
    needed=$(apt-cache depends --important "$package" | sed -n 's/^ *Depends: //p')
    prefixes=$(printf '^%s-\n' "$@")
    apt-get download "$package" $(echo "$needed" | grep "$prefixes")
    for file in *.deb; do
        dpkg -x "$file" .
        rm "$file"
    done
}
"""
# Both scripts leave the file `version` out if the mirror does not have the package.
HEADERS = UPDATE + FETCH + r"""
start=$1 place=$2
headers=$(apt-cache search --names-only "^linux-headers-$start[0-9.+-]*(deb[0-9]*-)?amd64\$" |
          sed 's/ .*//' | sort -V | tail -n 1)
[ -n "$headers" ] || exit 0
cd /mnt/out
fetch "$headers" linux-headers linux-kbuild
sed -i "s,/usr/src/,$place/usr/src/," "usr/src/$headers/Makefile"
echo "${headers#linux-headers-}" > version
"""
# Older packages have the kernel in boot and the modules in lib, newer ones have both in usr/lib/modules.
IMAGE = UPDATE + FETCH + """
version=$1
apt-cache show "linux-image-$version" > /tmp/package || exit 0
cd /mnt/out
fetch "linux-image-$version" linux-binary linux-modules linux-base
[ -d lib ] || ln -s usr/lib lib
[ -d boot ] || mkdir boot
[ -e "boot/vmlinuz-$version" ] || mv "lib/modules/$version/vmlinuz" "boot/vmlinuz-$version"
echo "$version" > version
"""
# What the builds of RDMA and of DMA engines do not read: of other folders of drivers, the Kconfig and Makefile suffice.
UNREAD = """
    arch/[!ax]*/*.[chS] arch/arm/*.[chS] arch/*/boot/dts/*
    Documentation/devicetree/bindings/*/* Documentation/translations/*
    drivers/[!di]*/*.[ch] sound/*.[ch] fs/*.c tools/perf/* tools/testing/*
""".split()
SOURCE = UPDATE + r"""
package=linux-source-$1 archive=$2
shift 2
cd /mnt/out
apt-cache show "$package" > /tmp/package || exit 0
apt-get download "$package"
dpkg --fsys-tarfile *.deb | tar -xO "./usr/src/$package.tar.xz" > "$archive"
rm *.deb
printf "$package/%s\n" "$@" > /tmp/unread
mkdir tree
tar -xJf "$archive" -C tree --strip-components=1 --anchored --exclude-from=/tmp/unread
sed -n 's/^Version: //p' /tmp/package > version
"""


def names():
    """All lines, the oldest first."""
    return sorted([STOCK, *SUITES], key=lambda line: [int(number) for number in line.split(".")])


def choices():
    """What make() takes."""
    return [*SUITES, NEWEST]


def suites_of(line):
    return SUITES_OF_NEWEST if line == NEWEST else (SUITES[line],)


def place_of(line):
    """The words for it in a message."""
    suites = suites_of(line)
    return f"the suite{'s' if len(suites) > 1 else ''} {', '.join(suites)} of the mirror"


def start_of(line):
    """How its versions start, as a regular expression."""
    return "[0-9]" if line == NEWEST else re.escape(f"{line}.")


@dataclasses.dataclass(frozen=True)
class Headers:
    """Those of one kernel: the folder that a build sees as PLACE, and the kernel's version."""
    line: str
    folder: Path
    version: str

    def tree(self):
        """The folder in which make runs, as a build sees it."""
        return f"{PLACE}/usr/src/linux-headers-{self.version}"

    def path(self):
        """The same folder of the host."""
        return self.folder / f"usr/src/linux-headers-{self.version}"

    def binds(self):
        """What a build must see for that: name -> host folder."""
        return {"kernel": self.folder}


class Superseded(ToolError):
    """The mirror does not have the version of the headers that are here."""


def headers_key(root, line):
    return cache.key(root.key, HEADERS, APT, line, *suites_of(line))


def is_made(root, line):
    return cache.entry(KIND, headers_key(root, line)).is_dir()


def make(line):
    """The headers of a line, fetched first if they are missing."""
    root = buildroot.make()
    step = f"headers of Linux {line}"

    def build(folder):
        log = cache.log_path(f"{KIND}-{line}")
        log.unlink(missing_ok=True)
        fetch(root, HEADERS, [start_of(line), PLACE], line, folder, log, step)
        if not (folder / "version").is_file():
            raise ToolError(f"{place_of(line)} has no kernel of the line {line}", CURE, log)

    folder = cache.make(KIND, headers_key(root, line), build, 256 * cache.MIB, step)
    return Headers(line, folder, (folder / "version").read_text().strip())


def renew(headers):
    """The line's headers that the mirror has now. The old ones stay beside them, for builds that are under way."""
    with cache.lock(f"{KIND}-renewal"):
        if make(headers.line) == headers:
            aside = headers.folder.with_name(f"{headers.folder.name}-{headers.version}")
            cache.remove(aside)
            headers.folder.rename(aside)
        return make(headers.line)


def fetch_image(root, headers, folder, log, step):
    """Unpack the kernel of these headers and its modules in an empty folder: boot/ and lib/modules/."""
    fetch(root, IMAGE, [headers.version], headers.line, folder, log, step)
    if not (folder / "version").is_file():
        raise Superseded(f"{place_of(headers.line)} has no Linux {headers.version}", CURE, log)


def source_key(root, line):
    return cache.key(root.key, SOURCE, APT, ARCHIVE, *UNREAD, line, SUITES[line])


def source(line):
    """The folder with the kernel's sources of a line, fetched first if they are missing; nobody writes to it.

    It has what the builds of RDMA and of DMA engines read. The ARCHIVE beside it has all sources, to build a kernel.
    """
    root = buildroot.make()
    step = f"sources of Linux {line}"

    def build(folder):
        log = cache.log_path(f"{SOURCE_KIND}-{line}")
        log.unlink(missing_ok=True)
        fetch(root, SOURCE, [line, ARCHIVE, *UNREAD], line, folder, log, step)
        if not (folder / "version").is_file():
            raise ToolError(f"{place_of(line)} has no sources of the line {line}", CURE, log)

    return cache.make(SOURCE_KIND, source_key(root, line), build, cache.GIB, step) / "tree"


def archive(line):
    """The archive of a line's sources, fetched first if it is missing."""
    return source(line).parent / ARCHIVE


def sources(root, suite):
    """The lines of a sources.list for a suite, from the mirror of the build root, or from the one that is set."""
    mirror = os.environ.get("HGHCA_MIRROR", "")
    if re.match(r"\w+:", mirror):
        return f"deb {mirror} {suite} main\n"
    own = (root.path / "etc/apt/sources.list").read_text()
    found = re.findall(rf"^deb (.*) {buildroot.SUITE} main", own, re.MULTILINE)
    return "".join(f"deb {mirror} {suite} main\n" for mirror in found)


def fetch(root, script, arguments, line, folder, log, step):
    """Run a script that fetches packages of a line's suites into the folder; what apt refuses is told for NEWEST."""
    listed = "".join(sources(root, suite) for suite in suites_of(line))
    try:
        run_apt(root, UNDATED * (line == NEWEST) + script, arguments, listed, folder, log, step)
    except ToolError as error:
        if line != NEWEST:
            raise
        raise ToolError(f"the newest kernel is not to be had: {refusal(log) or error.what}", CURE, log) from error


def fetch_source(root, script, version, suite, folder, log, step):
    """Run a script that fetches a source package of a suite in this version into the folder."""
    run_apt(root, script, [version], re.sub("^deb ", "deb-src ", sources(root, suite), flags=re.MULTILINE), folder, log, step)


def refusal(log):
    """The first error that apt has written to a log, with the address of a file that is gone; "" without one."""
    said = log.read_text(errors="replace") if log.exists() else ""
    found = re.search(r"^E: (.*)", said, re.MULTILINE)
    return found.group(1) if found else ""


def run_apt(root, script, arguments, listed, folder, log, step):
    """Run a script that fetches what the lines `listed` of a sources.list have into the folder."""
    settings = folder / "apt"
    settings.mkdir()
    (settings / "apt.conf").write_text("".join(f"{option};\n" for option in buildroot.apt_options()) + APT)
    (settings / "sources.list").write_text(listed)
    root.run(["sh", "-c", script, "sh", *arguments], log, step, buildroot.NETWORK_CURE,
             {"out": folder, "apt": settings})
    cache.remove(settings)
