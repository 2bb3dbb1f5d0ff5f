# SPDX-License-Identifier: GPL-2.0-or-later
"""Link impairment by the device's own fault injection: the data is right all the same.

The rules are those of the client's HCA, in both directions. The programs talk TCP over the same link, so most rules
keep to packets of RoCE.
"""

import contextlib
import subprocess

from framework import IMPAIRMENT, expect, succeeded, test
from hghca_lib import buildroot, qemu
from hghca_lib.guest import GuestError
from hghca_lib.tiers import ALL
from pingpong import command, pingpong
from recorder import EVERY, OUT, RECEIVED

HCA = "/machine/peripheral/hca1"
DAMAGED = ("rx_bad_icrc", "rx_too_short", "rx_bad_header")

# What is counted, rules. The server of ibv_rc_pingpong goes when it has all, and does not ask if the client knows: what
# loses packets has an end before the last of them.
EACH = [
    ("dropped", "drop,rate=1%,count=30,frames=roce"),
    ("dropped", "drop,opcode=ack,rate=20%,count=20"),
    ("dropped", "drop,opcode=send_middle,every=97,count=30"),
    ("duplicated", "duplicate,rate=5%,frames=roce"),
    ("duplicated", "duplicate,rate=5%,us=2000,jitter=5000,frames=roce"),
    ("reordered", "reorder,rate=2%,by=3,frames=roce"),
    ("delayed", "delay,us=300,frames=roce"),
    ("delayed", "delay,rate=2%,us=300,jitter=500,frames=roce"),
    ("corrupted", "corrupt,rate=1%,count=30,frames=roce"),
    ("truncated", "truncate,rate=1%,count=30,bytes=9,frames=roce"),
]


def impairment_test(name, **options):
    return test(f"impairment: {name}", subjects=("hghca",), **options)


def read(testbed, name):
    return testbed.guest.qmp("qom-get", path=HCA, property=name)


def write(testbed, name, value):
    testbed.guest.qmp("qom-set", path=HCA, property=name, value=value)


@contextlib.contextmanager
def impairment(testbed, rules, seed=1):
    """The rules as long as the block; what they have done by then, by kind, is added to what is yielded."""
    before, done = read(testbed, "fault-counts"), {}
    write(testbed, "fault-seed", seed)
    write(testbed, "faults", rules)
    try:
        yield done
    finally:
        write(testbed, "faults", "")
        after = read(testbed, "fault-counts")
        done.update({name: after[name] - before[name] for name in after if after[name] != before[name]})
        testbed.note(f"{rules or 'no rules'}: {done}")
    # What the first HCA damages goes out so; what it gets is captured before that.
    if testbed.journal and {"corrupted", "truncated"} & set(done):
        expect(OUT not in testbed.journal.ways, "frames were damaged that are checked; the test wants checked=RECEIVED")


def damaged(testbed):
    return sum(testbed.counter(side, name) for side in testbed.sides for name in DAMAGED)


for kind, rules in EACH:
    @impairment_test(f"rc, {rules}", limit_s=120, checked=RECEIVED if kind in ("corrupted", "truncated") else EVERY)
    def each(testbed, kind=kind, rules=rules):
        before = damaged(testbed)
        with impairment(testbed, rules) as done:
            pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
        expect(done.get(kind, 0) > 0, f"nothing was {kind}: {done}")
        expect(set(done) <= {kind, "held"}, f"more was done than asked for: {done}")
        seen, hurt = damaged(testbed) - before, done.get("corrupted", 0) + done.get("truncated", 0)
        expect(seen == hurt, f"{hurt} packets were damaged, and {seen} seen to be")


@impairment_test("changed under traffic", limit_s=120, checked=RECEIVED)
def under_traffic(testbed):
    """Rules come and go while messages do; in the end no rule is left."""
    port = testbed.next_port()
    arguments = ("ipv4", "-m 1024", 8192, 1000, port)
    with impairment(testbed, "delay,us=5000,frames=roce") as done:
        server = testbed.start(command("ibv_rc_pingpong", testbed.server, *arguments), testbed.server)
        testbed.wait_listening(port, testbed.server, server, "tcp")
        client = testbed.start(command("ibv_rc_pingpong", testbed.client, *arguments) + f" {testbed.server.address}")
        for kind, rules in EACH:
            count = read(testbed, "fault-counts")[kind]
            write(testbed, "faults", f"{rules};delay,us=5000,frames=roce")
            testbed.wait_until(lambda kind=kind, count=count: read(testbed, "fault-counts")[kind] > count or
                               not client.running(), f"frames {kind}", timeout=60)
            expect(client.running(), f"the traffic was over before `{rules}`")
    for end in (client, server):
        result = succeeded("ibv_rc_pingpong", end.wait(testbed.left()))
        expect("invalid data" not in result.output and "1000 iters in " in result.stdout, result.output[-400:])
    expect({kind for kind, _ in EACH} <= set(done), f"not everything was done: {done}")


@impairment_test("all frames are late")
def late(testbed):
    """Twice 60 ms on the way there and back, by the clock of ping."""
    with impairment(testbed, "delay,us=60000"):
        said = testbed.run(f"ping -n -c 3 -i 0.2 -W 10 {testbed.server.address}")
    shortest = float(said.rpartition("= ")[2].split("/")[0])
    expect(shortest >= 120, f"a ping took {shortest} ms")


@impairment_test("cable and reset, with frames held back", expected_log=(r"link (becomes ready|is (down|up))",))
def held(testbed):
    def hold():
        testbed.try_run(f"ping -n -c 2 -i 0.05 -W 1 {testbed.server.address}")
        expect(read(testbed, "fault-counts")["held"] > 0, "nothing is held back")

    # What comes from the other end may come at any time.
    with impairment(testbed, "delay,us=10000000,dir=tx") as done:
        hold()
        testbed.guest.qmp("set_link", name="h1", up=False)
        expect(read(testbed, "fault-counts")["held"] == 0, "frames are held back for a link that is down")
        testbed.guest.qmp("set_link", name="h1", up=True)
        testbed.await_gids(testbed.client)
        hold()
        testbed.run(f"echo {testbed.client.pci} > /sys/bus/pci/drivers/hghca/unbind")
        try:
            testbed.run(f"echo 1 > /sys/bus/pci/devices/{testbed.client.pci}/reset")
            expect(read(testbed, "fault-counts")["held"] == 0, "frames are held back after a reset")
        finally:
            write(testbed, "faults", "")
            testbed.run(f"echo {testbed.client.pci} > /sys/bus/pci/drivers/hghca/bind")
            testbed.configure(testbed.client)
    expect(done["purged"] > 1, f"no frame was lost: {done}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@impairment_test("bad rules are told, and nothing changes")
def bad(testbed):
    wrong = {"dorp": "there is no fault 'dorp'; there are drop, duplicate, reorder, delay, corrupt, mark, truncate",
             "drop,rate=2": "'rate' takes 0 to 1", "drop;delay,us": "rule 2: 'us': 'us' takes 0 to 10000000",
             "truncate,bits=1": "'truncate' has no word 'bits'; it has dir, "}
    with impairment(testbed, "drop,psn=1,qp=1"):
        for rules, words in wrong.items():
            try:
                write(testbed, "faults", rules)
            except GuestError as error:
                expect(words in str(error) and "'faults'" in str(error), f"of `{rules}`: {error}")
            else:
                expect(False, f"`{rules}` was taken")
            expect(read(testbed, "faults") == "drop,psn=1,qp=1", "the rules have changed")
    emulator = qemu.make(buildroot.make())
    for rules, words in wrong.items():
        done = subprocess.run([*emulator.argv(), "-machine", "q35", "-nodefaults", "-display", "none", "-S", "-device",
                               f"hghca,faults={rules.replace(',', ' ')}"], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 1 and words in done.stderr, f"-device of `{rules}`: {done.returncode} {done.stderr}")


@impairment_test("from the start", machine=IMPAIRMENT, limit_s=120, tier=ALL)
def from_the_start(testbed):
    """Both HCAs impair their links from the start, also while the driver probes."""
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
    for number in (1, 2):
        seed, rules, counts = (testbed.guest.qmp("qom-get", path=f"/machine/peripheral/hca{number}", property=name)
                               for name in ("fault-seed", "faults", "fault-counts"))
        expect(seed == 7 and rules.startswith("drop rate=1%"), f"other rules, or another seed: {rules}, {seed}")
        expect(counts["dropped"] == 30 and counts["delayed"] > 0, f"HCA {number}: {counts}")
