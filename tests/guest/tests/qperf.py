# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf: its verifying tests of atomics, over connections of the CM.

Without `-cm1` it makes addresses by LIDs, as its UC, UD and XRC tests always do: which do not exist on Ethernet.

Its server sends the client the port before it listens there, so the CM rejects 4 requests of 100.
qperf's commit 118a571, after Debian's 0.4.11, corrects that. Such a request is sent again, to another server.
"""

import re

from framework import expect, succeeded, test

SECONDS = 1
FIGURE = r"^ +(?:bw|latency|msg_rate) += +([\d.,]+ .*)$"
VERIFYING = ("ver_rc_compare_swap", "ver_rc_fetch_add")
REJECTED = "unexpected event from RDMA CM: Event rejected\n    expecting: Event established"
# Five requests of which each is rejected: once in ten million tests.
TRIES = 5


def qperf(testbed, name, options=""):
    """One test. qperf ends badly at a value that is not what it should be, and counts completions with an error."""
    for _ in range(TRIES):
        result, server = tried(testbed, name, options)
        if REJECTED not in result.output:
            break
    said = succeeded(f"qperf {name}", result).stdout
    expect(said.startswith(f"{name}:"), f"qperf said: {said[-500:]}")
    expect(not re.search("error|mismatch|fail", said, re.IGNORECASE), f"qperf said: {said[-1000:]}")
    figure = re.search(FIGURE, said, re.MULTILINE)
    expect(figure, f"no figure: {said[-1000:]}")
    testbed.note(f"{name}: {figure.group(1)}")
    expect(server.running(), f"the server ended: {server.output[-500:]}")
    ended(server)


def tried(testbed, name, options):
    """The result of a client, and its server, which still runs unless the request was rejected."""
    port = testbed.next_port()
    server = testbed.start(f"exec qperf -lp {port}", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    client = f"qperf {testbed.server.address} -lp {port} -cm1 -t {SECONDS} -vvs {options} {name}"
    result = testbed.try_run(client)
    if REJECTED in result.output:
        testbed.note("a request came before its server listened")
        ended(server)
    return result, server


def ended(server):
    server.kill()
    server.wait(10)


for test_name in VERIFYING:
    test(f"qperf: {test_name}", lambda testbed, name=test_name: qperf(testbed, name))
    test(f"qperf: {test_name}, 8 bytes", lambda testbed, name=test_name: qperf(testbed, name, "-m 8"))
