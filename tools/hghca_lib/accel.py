# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM or TCG: KVM only after a guest has really booted with it.

/dev/kvm can open on a machine on which no guest ever gets past its boot
loader, so a short boot under a time limit decides. The answer is remembered
until this machine boots again.
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
    answer = cache.root() / "accel" / cache.key(boot_id, setup.kernel.version)
    with cache.lock("accel"):
        if not answer.exists():
            answer.parent.mkdir(exist_ok=True)
            answer.write_text(probe(setup))
    return answer.read_text()


def probe(setup):
    """Boot a guest without HCAs under KVM; "tcg" when it does not come up in time."""
    try:
        with guest.boot(setup, machine.Config(hcas=0, accel="kvm"), timeout=PROBE_TIMEOUT_S):
            return "kvm"
    except ToolError:
        return "tcg"
