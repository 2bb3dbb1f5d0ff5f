# SPDX-License-Identifier: GPL-2.0-or-later
"""The host: root privileges, the packages that the tool itself needs, commands with a log."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import time

from . import cache
from .errors import ToolError

# program -> Debian package that has it
NEEDED = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
}
ERROR = re.compile(r"^E: |\berror\b:|undefined reference|No space left", re.IGNORECASE)
SBIN = ["/usr/local/sbin", "/usr/sbin", "/sbin"]


def find(program):
    """The program's path, searched in the sbin folders too; None if it is missing."""
    path = os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), *SBIN])
    return shutil.which(program, path=path)


def environment():
    """The environment for host programs: a plain locale, the sbin folders in PATH."""
    env = dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive")
    env["PATH"] = os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), *SBIN])
    return env


def at_priority(nice):
    """The start of the command line of a new session that runs at a nice value."""
    return ["nice", "-n", str(nice), *in_a_group()]


def in_a_group():
    """The start of the command line of a new session: as a group of the scheduler, it gets its own nice value too.

    The scheduler takes each session for a group. Between groups only their nice values count, and a new group has 0.
    """
    return ["sh", "-c", 'nice 2> /dev/null > /proc/self/autogroup; exec "$0" "$@"']


def require_root():
    if os.geteuid() != 0:
        raise ToolError("this needs root: build roots are made with chroot and mounts",
                        "run it again with sudo, or as root")


def require_platform():
    if platform.machine() != "x86_64":
        raise ToolError(f"this machine is {platform.machine()}; the guest and its emulator are built for x86_64",
                        "use an x86_64 machine")


def missing():
    return sorted({package for program, package in NEEDED.items() if not find(program)})


def install():
    """Install the packages that the tool itself needs and the host lacks."""
    packages = missing()
    if not packages:
        return
    log = cache.log_path("host")
    cure = f"install these packages yourself: {' '.join(packages)}"
    if not find("apt-get"):
        raise ToolError(f"these programs are missing and there is no apt-get: {' '.join(packages)}", cure)
    run_logged(["apt-get", "update"], log, "host packages", cure)
    run_logged(["apt-get", "install", "-y", "--no-install-recommends", *packages], log, "host packages", cure)
    if missing():
        raise ToolError(f"still missing after apt-get install: {' '.join(missing())}", cure, log)


def run_logged(argv, log, step, cure, tries=1, timeout_s=3600, shown=None):
    """Run a host command with its output in a log; fail with the step's name, log and cure.

    shown: the command for log and failure, if argv only wraps it.
    """
    shown = shlex.join(map(str, shown or argv))
    program = shown.split()[0]
    for attempt in range(1, tries + 1):
        with open(log, "ab") as file:
            file.write(f"$ {shown}\n".encode())
            file.flush()
            try:
                status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                        env=environment(), timeout=timeout_s).returncode
            except subprocess.TimeoutExpired:
                raise ToolError(f"{step}: {program} did not end within {timeout_s} s", cure, log) from None
        if status == 0:
            return
        if attempt < tries:
            time.sleep(2 * attempt)
    raise ToolError(f"{step}: {program} failed with status {status}: {last_line(log)}", cure, log)


def last_line(log):
    """The most informative line of a log: the first error near its end, else the last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()[-300:] if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    return (errors[:1] or lines[-1:] or ["(the log is empty)"])[0][:300]
