# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's ccache, for a build within the build root: it has other libraries than the host, so the host's loader starts it.

All trees are seen in the same folder there, so what one has compiled serves the others too.
"""

import os
import platform
import shlex
import shutil
import subprocess

COMPILER = "gcc"
PROGRAMS, HOST, STORE = (f"/mnt/{name}" for name in ("ccache-programs", "ccache-host", "ccache-store"))


def settings(root, folder):
    """(binds, environment) of a build, both empty without a ccache that runs in the root. folder: for the compiler's stand-in."""
    program = shutil.which("ccache")
    store = program and said_store(program)
    if not store:
        return {}, {}
    folder.mkdir(exist_ok=True)
    wrapper = folder / COMPILER
    # Not in place: another build may run it.
    new = wrapper.with_suffix(".new")
    new.write_text(f"#!/bin/sh\nexec {shlex.join(command(program))} /usr/bin/{COMPILER} \"$@\"\n")
    new.chmod(0o755)
    new.replace(wrapper)
    binds = {"ccache-programs": folder, "ccache-host": "/", "ccache-store": store}
    env = {"PATH": f"{PROGRAMS}:/usr/sbin:/usr/bin", "CCACHE_DIR": STORE}
    return (binds, env) if root.output([COMPILER, "--version"], binds, env=env).returncode == 0 else ({}, {})


def command(program):
    """That starts a program of the host, as the build root sees both. Links of the host may be absolute."""
    multiarch = f"{platform.machine()}-linux-gnu"
    folders = [f"{HOST}{path}" for path in (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/usr/lib")]
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    return [f"{HOST}{loader}", "--library-path", ":".join(folders), f"{HOST}{os.path.realpath(program)}"]


def said_store(program):
    """The folder in which ccache keeps its results, made if it is missing; None if ccache does not tell it."""
    done = subprocess.run([program, "--get-config", "cache_dir"], capture_output=True, text=True)
    store = done.stdout.strip()
    if done.returncode or not os.path.isabs(store):
        return None
    os.makedirs(store, exist_ok=True)
    return store
