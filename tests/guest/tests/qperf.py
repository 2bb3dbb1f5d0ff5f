# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf: its verifying tests of atomics, over connections of the CM.

Without `-cm1` it makes addresses by LIDs, as its UC, UD and XRC tests always do: which do not exist on Ethernet.
"""

import re

from framework import expect, test

SECONDS = 1
FIGURE = r"^ +(?:bw|latency|msg_rate) += +([\d.,]+ .*)$"
VERIFYING = ("ver_rc_compare_swap", "ver_rc_fetch_add")


def qperf(testbed, name, options=""):
    """One test. qperf ends badly at a value that is not what it should be, and counts completions with an error."""
    port = testbed.next_port()
    server = testbed.start(f"exec qperf -lp {port}", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    said = testbed.run(f"qperf {testbed.server.address} -lp {port} -cm1 -t {SECONDS} -vvs {options} {name}")
    expect(said.startswith(f"{name}:"), f"qperf said: {said[-500:]}")
    expect(not re.search("error|mismatch|fail", said, re.IGNORECASE), f"qperf said: {said[-1000:]}")
    figure = re.search(FIGURE, said, re.MULTILINE)
    expect(figure, f"no figure: {said[-1000:]}")
    testbed.note(f"{name}: {figure.group(1)}")
    expect(server.running(), f"the server ended: {server.output[-500:]}")
    server.kill()
    server.wait(10)


for test_name in VERIFYING:
    test(f"qperf: {test_name}", lambda testbed, name=test_name: qperf(testbed, name))
    test(f"qperf: {test_name}, 8 bytes", lambda testbed, name=test_name: qperf(testbed, name, "-m 8"))
