# SPDX-License-Identifier: GPL-2.0-or-later
"""The project's own test programs: compiled in the build root, shared into the guests as /share."""

from pathlib import Path

from hghca_lib import cache, interface, provider, repo

GUEST = Path(__file__).resolve().parents[1]
# program -> its C files in programs/
PROGRAMS = {
    "badcalls": ["badcalls.c", "testbed.c"],
    "badverbs": ["badverbs.c", "testbed.c"],
    "badwqe": ["badwqe.c", "raw.c", "testbed.c"],
    "buffers": ["buffers.c", "raw.c", "testbed.c"],
    "datacheck": ["datacheck.c", "testbed.c"],
    "devmem": ["devmem.c", "link.c", "testbed.c"],
    "odp": ["odp.c", "link.c", "testbed.c"],
    "opcodes": ["opcodes.c", "link.c", "testbed.c"],
    "isolation": ["isolation.c", "isolation_doorbells.c", "isolation_handles.c", "isolation_keys.c",
                  "isolation_memory.c", "isolation_rights.c", "raw.c", "testbed.c"],
    "ernic": ["ernic.c", "testbed.c"],
    "errnos": ["errnos.c", "testbed.c"],
    "faults": ["faults.c", "testbed.c"],
    "grants": ["grants.c", "testbed.c"],
    "lacking": ["lacking.c", "raw.c", "testbed.c"],
    "locks": ["locks.c", "testbed.c"],
    "loopback": ["loopback.c", "testbed.c"],
    "manyqps": ["manyqps.c", "testbed.c"],
    "mcast": ["mcast.c", "testbed.c"],
    "mr": ["mr.c", "link.c", "testbed.c"],
    "mw": ["mw.c", "link.c", "testbed.c"],
    "placement": ["placement.c", "link.c", "testbed.c"],
    "rawpacket": ["rawpacket.c", "rss.c", "link.c", "testbed.c"],
    "rsnic": ["rsnic.c", "testbed.c"],
    "srq": ["srq.c", "testbed.c"],
    "tables": ["tables.c", "testbed.c"],
    "timed": ["timed.c", "link.c", "testbed.c"],
    "vendorops": ["vendorops.c", "vendorops_bad.c", "vendorops_part.c", "vendorops_read.c", "raw.c",
                  "testbed.c"],
    "xrc": ["xrc.c", "link.c", "testbed.c"],
}
# shared library -> its C files in programs/
LIBRARIES = {
    "smc_preload.so": ["smc_preload.c"],
    "spinwatch.so": ["spinwatch.c"],
}
# Programs with functions that replace those of a library.
EXPORTING = {"tables"}
# Programs that use hghcadv.h.
DIRECT = {"lacking", "vendorops"}
DIRECT_FLAGS = f"-I/mnt/provider/{provider.HEADERS} -L/mnt/provider -l:{provider.LIBRARY}"
FLAGS = "-O2 -g -std=gnu11 -Wall -Wextra -Werror -I/mnt/include -I/mnt/include/uapi"


def make(buildroot):
    """The folder with the programs and the Python scripts for the guest."""
    sources = [GUEST / "programs", GUEST / "agents", repo.path("include")]
    key = cache.key(buildroot.key, FLAGS, str(PROGRAMS), str(LIBRARIES), str(EXPORTING), str(sorted(DIRECT)),
                    DIRECT_FLAGS, provider.interface_key(), interface.module(), cache.tree_key(repo.ROOT, *sources))

    def build(folder):
        log = cache.log_path("guest-programs")
        log.unlink(missing_ok=True)
        binds = {"programs": GUEST / "programs", "include": repo.path("include"), "out": folder,
                 "provider": provider.make(buildroot)}
        commands = [f"gcc {FLAGS} {'-rdynamic ' if program in EXPORTING else ''}-o /mnt/out/{program} "
                    f"{' '.join(files)} {DIRECT_FLAGS if program in DIRECT else ''} -libverbs"
                    for program, files in PROGRAMS.items()]
        commands += [f"gcc {FLAGS} -shared -fPIC -o /mnt/out/{library} {' '.join(files)}"
                     for library, files in LIBRARIES.items()]
        for command in commands:
            buildroot.run(["sh", "-c", command], log, "guest test programs",
                          "the error is in tests/guest/programs of this checkout; correct it there", binds, "/mnt/programs")
        for script in (GUEST / "agents").glob("*.py"):
            (folder / script.name).write_bytes(script.read_bytes())
        (folder / "interface.py").write_text(interface.module())

    return cache.make("guest-programs", key, build, 64 * cache.MIB, "guest test programs")
