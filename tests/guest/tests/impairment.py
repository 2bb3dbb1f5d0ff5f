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


def read(rig, name):
    return rig.guest.qmp("qom-get", path=HCA, property=name)


def write(rig, name, value):
    rig.guest.qmp("qom-set", path=HCA, property=name, value=value)


@contextlib.contextmanager
def impairment(rig, rules, seed=1):
    """The rules as long as the block; what they have done by then, by kind, is added to what is yielded."""
    before, done = read(rig, "fault-counts"), {}
    write(rig, "fault-seed", seed)
    write(rig, "faults", rules)
    try:
        yield done
    finally:
        write(rig, "faults", "")
        after = read(rig, "fault-counts")
        done.update({name: after[name] - before[name] for name in after if after[name] != before[name]})
        rig.note(f"{rules or 'no rules'}: {done}")
    # What the first HCA damages goes out so; what it gets is captured before that.
    if rig.journal and {"corrupted", "truncated"} & set(done):
        expect(OUT not in rig.journal.ways, "frames were damaged that are judged; the test wants judged=RECEIVED")


def damaged(rig):
    return sum(rig.counter(side, name) for side in rig.sides for name in DAMAGED)


for kind, rules in EACH:
    @impairment_test(f"rc, {rules}", limit_s=120, judged=RECEIVED if kind in ("corrupted", "truncated") else EVERY)
    def each(rig, kind=kind, rules=rules):
        before = damaged(rig)
        with impairment(rig, rules) as done:
            pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
        expect(done.get(kind, 0) > 0, f"nothing was {kind}: {done}")
        expect(set(done) <= {kind, "held"}, f"more was done than asked for: {done}")
        seen, hurt = damaged(rig) - before, done.get("corrupted", 0) + done.get("truncated", 0)
        expect(seen == hurt, f"{hurt} packets were damaged, and {seen} seen to be")


@impairment_test("changed under traffic", limit_s=120, judged=RECEIVED)
def under_traffic(rig):
    """Rules come and go while messages do; the last are that there are none."""
    port = rig.next_port()
    arguments = ("ipv4", "-m 1024", 8192, 1000, port)
    with impairment(rig, "delay,us=5000,frames=roce") as done:
        server = rig.start(command("ibv_rc_pingpong", rig.server, *arguments), rig.server)
        rig.wait_listening(port, rig.server, server, "tcp")
        client = rig.start(command("ibv_rc_pingpong", rig.client, *arguments) + f" {rig.server.address}")
        for kind, rules in EACH:
            count = read(rig, "fault-counts")[kind]
            write(rig, "faults", f"{rules};delay,us=5000,frames=roce")
            rig.wait_until(lambda kind=kind, count=count: read(rig, "fault-counts")[kind] > count or not client.running(),
                           f"frames {kind}", timeout=60)
            expect(client.running(), f"the traffic was over before `{rules}`")
    for end in (client, server):
        result = succeeded("ibv_rc_pingpong", end.wait(rig.left()))
        expect("invalid data" not in result.output and "1000 iters in " in result.stdout, result.output[-400:])
    expect({kind for kind, _ in EACH} <= set(done), f"not everything was done: {done}")


@impairment_test("all frames are late")
def late(rig):
    """Twice 60 ms on the way there and back, by the clock of ping."""
    with impairment(rig, "delay,us=60000"):
        said = rig.run(f"ping -n -c 3 -i 0.2 -W 10 {rig.server.address}")
    shortest = float(said.rpartition("= ")[2].split("/")[0])
    expect(shortest >= 120, f"a ping took {shortest} ms")


@impairment_test("cable and reset, with frames held back", expected_log=(r"link (becomes ready|is (down|up))",))
def held(rig):
    def hold():
        rig.try_run(f"ping -n -c 2 -i 0.05 -W 1 {rig.server.address}")
        expect(read(rig, "fault-counts")["held"] > 0, "nothing is held back")

    # What comes from the other end may come at any time.
    with impairment(rig, "delay,us=10000000,dir=tx") as done:
        hold()
        rig.guest.qmp("set_link", name="h1", up=False)
        expect(read(rig, "fault-counts")["held"] == 0, "frames are held back for a link that is down")
        rig.guest.qmp("set_link", name="h1", up=True)
        rig.await_gids(rig.client)
        hold()
        rig.run(f"echo {rig.client.pci} > /sys/bus/pci/drivers/hghca/unbind")
        try:
            rig.run(f"echo 1 > /sys/bus/pci/devices/{rig.client.pci}/reset")
            expect(read(rig, "fault-counts")["held"] == 0, "frames are held back after a reset")
        finally:
            write(rig, "faults", "")
            rig.run(f"echo {rig.client.pci} > /sys/bus/pci/drivers/hghca/bind")
            rig.configure(rig.client)
    expect(done["purged"] > 1, f"no frame was lost: {done}")
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@impairment_test("bad rules are told, and nothing changes")
def bad(rig):
    wrong = {"dorp": "there is no fault 'dorp'; there are drop, duplicate, reorder, delay, corrupt, mark, truncate",
             "drop,rate=2": "'rate' takes 0 to 1", "drop;delay,us": "rule 2: 'us': 'us' takes 0 to 10000000",
             "truncate,bits=1": "'truncate' has no word 'bits'; it has dir, "}
    with impairment(rig, "drop,psn=1,qp=1"):
        for rules, words in wrong.items():
            try:
                write(rig, "faults", rules)
            except GuestError as error:
                expect(words in str(error) and "'faults'" in str(error), f"of `{rules}`: {error}")
            else:
                expect(False, f"`{rules}` was taken")
            expect(read(rig, "faults") == "drop,psn=1,qp=1", "the rules have changed")
    emulator = qemu.make(buildroot.make())
    for rules, words in wrong.items():
        done = subprocess.run([*emulator.argv(), "-machine", "q35", "-nodefaults", "-display", "none", "-S", "-device",
                               f"hghca,faults={rules.replace(',', ' ')}"], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 1 and words in done.stderr, f"-device of `{rules}`: {done.returncode} {done.stderr}")


@impairment_test("from the start", machine=IMPAIRMENT, limit_s=120)
def from_the_start(rig):
    """Both HCAs impair their links from the start, also while the driver probes."""
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
    for number in (1, 2):
        seed, rules, counts = (rig.guest.qmp("qom-get", path=f"/machine/peripheral/hca{number}", property=name)
                               for name in ("fault-seed", "faults", "fault-counts"))
        expect(seed == 7 and rules.startswith("drop rate=1%"), f"other rules, or another seed: {rules}, {seed}")
        expect(counts["dropped"] == 30 and counts["delayed"] > 0, f"HCA {number}: {counts}")
