# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a function-level reset through sysfs makes the device forget INIT_HCA.

usage: flr.py PCI-ADDRESS (no driver bound)
"""

import sys

sys.argv = [sys.argv[0], sys.argv[1]]
sys.path.insert(0, "/share")
import badcmd  # noqa: E402

device = badcmd.Device(sys.argv[1])
tests = badcmd.Tests(device)
wrong = []
tests.init(wrong)
tests.expect(wrong, "INIT_HCA while initialised", badcmd.BAD_SYS_STATE, badcmd.INIT_HCA,
             in_param=tests.mailbox(tests.init_box()))
device.hcr(2, 0x1234)
with open(f"{device.folder}/reset", "w") as file:
    file.write("1")
device.configure(0x6)
if device.hcr(2):
    wrong.append("the HCR kept its contents")
tests.init(wrong)
tests.alive(wrong)
device.reset()
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
