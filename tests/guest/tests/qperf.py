# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf: its verifying tests of atomics, over connections of the CM.

Without `-cm1` it makes addresses by LIDs, as its UC, UD and XRC tests always do: on Ethernet there are none.
"""

import re

from framework import expect, test

SECONDS = 1
FIGURE = r"^ +(?:bw|latency|msg_rate) += +([\d.,]+ .*)$"
VERIFYING = ("ver_rc_compare_swap", "ver_rc_fetch_add")


def qperf(rig, name, options=""):
    """One test. qperf ends badly at a value that is not what it should be, and counts completions with an error."""
    port = rig.next_port()
    server = rig.start(f"exec qperf -lp {port}", rig.server)
    rig.wait_listening(port, rig.server, server, "tcp")
    said = rig.run(f"qperf {rig.server.address} -lp {port} -cm1 -t {SECONDS} -vvs {options} {name}")
    expect(said.startswith(f"{name}:"), f"qperf said: {said[-500:]}")
    expect(not re.search("error|mismatch|fail", said, re.IGNORECASE), f"qperf said: {said[-1000:]}")
    figure = re.search(FIGURE, said, re.MULTILINE)
    expect(figure, f"no figure: {said[-1000:]}")
    rig.note(f"{name}: {figure.group(1)}")
    expect(server.running(), f"the server ended: {server.output[-500:]}")
    server.kill()
    server.wait(10)


for test_name in VERIFYING:
    test(f"qperf: {test_name}", lambda rig, name=test_name: qperf(rig, name))
    test(f"qperf: {test_name}, 8 bytes", lambda rig, name=test_name: qperf(rig, name, "-m 8"))
