# SPDX-License-Identifier: GPL-2.0-or-later
"""Client and server programs between the two HCAs of one guest.

The server runs beside hghca1 in the namespace b, at 10.10.0.2, the client
beside hghca0 in the first namespace, at 10.10.0.1.
"""

import re

from .guest import GuestError

SERVER_SPACE = "b"
# The namespace of HCA n of a guest is the one at n - 1; the first HCA is in none of them.
SPACES = "abcdefghij"
SERVER_ADDRESS, CLIENT_ADDRESS = "10.10.0.2", "10.10.0.1"
SERVER_DEVICE, CLIENT_DEVICE = "hghca1", "hghca0"
# Wait until a TCP socket or a connection manager's identifier listens on the port.
LISTENING = """
port=$1
hex=$(printf ':%04X 0.*:0000 0A' "$port")
while :; do
    grep -q "$hex" /proc/net/tcp /proc/net/tcp6 && exit 0
    rdma resource show cm_id 2>/dev/null | grep -q "LISTEN.*:$port " && exit 0
    sleep 0.02
done
"""
PINGPONG = "ibv_rc_pingpong -d {device} -g {gid} -c -s {size} -n {count}"
GIDS = """
cd /sys/class/infiniband/$1/ports/1
grep -H . gids/* gid_attrs/types/* 2>/dev/null
"""


def gid_index(guest, device=CLIENT_DEVICE, netns=None, address=CLIENT_ADDRESS):
    """The index of the device's RoCE v2 GID for an IPv4 address."""
    wanted = "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(*map(int, address.split(".")))
    result = guest.run(["sh", "-c", GIDS, "sh", device], netns=netns)
    lines = dict(line.split(":", 1) for line in result.stdout.splitlines())
    for name, gid in lines.items():
        index = name.removeprefix("gids/")
        if gid == wanted and lines.get(f"gid_attrs/types/{index}") == "RoCE v2":
            return int(index)
    raise GuestError(f"{device} has no RoCE v2 GID for {address}: {result.output}")


def client_gid(guest):
    return gid_index(guest)


def server_gid(guest):
    return gid_index(guest, SERVER_DEVICE, SERVER_SPACE, SERVER_ADDRESS)


def run(guest, server, client, port, timeout=60, netns=SERVER_SPACE):
    """Start the server, wait until it listens on the port, run the client; (server Result, client Result)."""
    serving = guest.start(server, netns=netns)
    serving.send(b"")
    listening = guest.start(["sh", "-c", LISTENING, "sh", str(port)], netns=netns)
    guest.wait_for_state(lambda: not listening.running() or not serving.running(), 20)
    if listening.running():
        listening.kill()
    done = guest.run(client, timeout=timeout)
    return serving.wait(10 if done.status == 0 else 1), done


def pingpong(guest, number=2, count=1000, gid=None, device=None, size=65536):
    """Round trips of `size` bytes, whose data both ends check (-c), from the first HCA to HCA `number` of the guest.

    gid: the client's GID index if it is known already. device: the name of that HCA if it is another. Returns (MB/s or 0 if an end has failed, the client's command
    line, (server Result, client Result)).
    """
    device, space, address = device or f"hghca{number - 1}", SPACES[number - 1], f"10.10.0.{number}"
    gid = client_gid(guest) if gid is None else gid
    server = PINGPONG.format(device=device, gid=gid_index(guest, device, space, address), count=count, size=size)
    client = f"{PINGPONG.format(device=CLIENT_DEVICE, gid=gid, count=count, size=size)} {address}"
    ends = run(guest, server, client, 18515, netns=space)
    found = re.search(r"= ([\d.]+) Mbit/sec", ends[1].stdout)
    sound = all(end.status == 0 and "invalid data" not in end.output for end in ends)
    return float(found.group(1)) / 8 if found and sound else 0, client, ends


def perftest(guest, name, options="", timeout=60, gids=None):
    """Run a perftest program with the same options on both sides; (server Result, client Result).

    gids: (client's, server's) GID index if they are known already.
    """
    mine, other = gids or (client_gid(guest), server_gid(guest))
    return run(guest, f"{name} -d {SERVER_DEVICE} -x {other} -F {options}",
               f"{name} -d {CLIENT_DEVICE} -x {mine} -F {options} {SERVER_ADDRESS}", 18515, timeout)


def perftest_rows(output):
    """The rows of numbers in a perftest program's output: [[bytes, iterations, ...], ...]."""
    rows = re.findall(r"^ (\d+)\s+(\d+)\s+([\d. \t]+)$", output, re.MULTILINE)
    return [[float(word) for word in " ".join(row).split()] for row in rows]
