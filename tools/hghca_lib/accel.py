# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM or TCG: KVM only after a guest has booted with it.

On some machines /dev/kvm opens, but no guest gets past its boot loader. A
short boot under a time limit therefore decides. The result is kept until this
machine boots again.
"""

import os
from pathlib import Path

from . import cache, guest, machine
from .errors import ToolError

PROBE_TIMEOUT_S = 20


def choose(setup):
    """The accelerator to use here: "kvm" or "tcg"."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    answer = cache.root() / "accel" / cache.key(boot_id, setup.buildroot.kernel_version())
    with cache.lock("accel"):
        if not answer.exists():
            answer.parent.mkdir(exist_ok=True)
            answer.write_text(probe(setup))
    return answer.read_text()


def probe(setup):
    """Boot a guest without HCAs under KVM; "tcg" if it does not boot in time."""
    try:
        with guest.boot(setup, machine.Config(hcas=0, accel="kvm"), timeout=PROBE_TIMEOUT_S):
            return "kvm"
    except ToolError:
        return "tcg"
