# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be seen from outside: objects, counters, frames, trace events, each compared with what a program has or does."""

import contextlib
import dataclasses
import json
import re
import struct

from hghca_lib.tiers import QUICK

from framework import Failure, expect, succeeded, test
from netdev import set_link
from pingpong import pingpong
from recorder import SENT

OURS = {"subjects": ("hghca",)}
# One whom the rdma tool must refuse what only an administrator may.
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all"
BOARD = "4847484341000001"
TRACING = "/sys/kernel/tracing"
# Ethernet, IPv4, UDP, BTH, ICRC; and with an AETH.
SEND_BYTES = 14 + 20 + 8 + 12 + 4
ACK_BYTES = SEND_BYTES + 4
# Of the interface document, 4.19.
QP_COUNTERS = """tx_packets rx_packets tx_bytes rx_bytes rx_bad_address rx_bad_pkey rx_bad_qkey rx_no_wqe rx_too_long
    duplicate_request out_of_sequence rnr_nak_sent rnr_nak_received packet_seq_err implied_nak_seq_err
    local_ack_timeout_err retransmitted remote_access_nak_sent remote_invalid_nak_sent cqe_error cqe_flush wqe_bad
    uc_dropped rx_send_requests rx_write_requests rx_read_requests rx_atomic_requests""".split()


def seen_test(name, **options):
    return test(f"observability: {name}", **OURS, **options)


def rdma(testbed, words, side=None):
    """What the rdma tool says, as JSON taken apart."""
    said = testbed.run(f"rdma -j {words}", side).strip()
    return json.loads(said) if said else []


class Program:
    """agents/observe.py on a side: `made` is what it has told of its objects."""

    def __init__(self, testbed, side):
        self.testbed = testbed
        self.lines = 0
        self.command = side.guest.start(f"exec python3 /share/observe.py {side.device} {side.gid('ipv4')}",
                                        netns=side.netns)
        testbed.running.append(self.command)
        self.made = self.answer()
        self.pid = self.made["pid"]

    def answer(self):
        self.lines += 1

        def answered():
            return self.command.text(1).count("\n") >= self.lines or not self.command.running()

        self.testbed.wait_until(answered, "an answer of observe.py", timeout=60)
        lines = self.command.text(1).split("\n")
        if len(lines) <= self.lines:
            raise Failure(f"observe.py ended: {self.command.output[-1500:]}")
        return json.loads(lines[self.lines - 1])

    def post(self, what, **arguments):
        self.command.send(json.dumps({"do": what, **arguments}) + "\n")

    def do(self, what, **arguments):
        self.post(what, **arguments)
        return self.answer()

    def qpns(self, kind):
        return [qp["qpn"] for qp in self.made["qps"] if qp["type"] == kind]

    def end(self):
        """As its input ends."""
        self.command.send(b"")
        succeeded("observe.py", self.command.wait(self.testbed.left(20)))


@contextlib.contextmanager
def connected(testbed, pairs=1):
    """A program on either side; their first RC QPs are connected one to one."""
    ends = [Program(testbed, side) for side in testbed.sides]
    for mine, other in (ends, ends[::-1]):
        for number in range(pairs):
            mine.do("connect", qpn=mine.qpns("RC")[number], peer=other.qpns("RC")[number], gid=other.made["gid"])
    yield ends
    for end in ends:
        end.end()


def send(sender, receiver, number, count, size=256):
    """So many messages from one program's RC QP to the other's, each acknowledged before the next."""
    for done in range(0, count, 50):
        now = min(50, count - done)
        receiver.do("receive", qpn=receiver.qpns("RC")[number], count=now)
        sender.do("send", qpn=sender.qpns("RC")[number], count=now, size=size)
        receiver.do("received", count=now)


# ---- rdma resource

def of_pid(entries, pid):
    return [entry for entry in entries if entry.get("pid") == pid]


def one(entries, **wanted):
    found = [entry for entry in entries if all(entry.get(key) == value for key, value in wanted.items())]
    expect(len(found) == 1, f"{len(found)} entries with {wanted}: {entries}")
    return found[0]


@seen_test("rdma resource shows a program's objects", tier=QUICK)
def resources(testbed):
    with connected(testbed) as (program, peer):
        pid, device = program.pid, testbed.client.device
        link = f"link {device}/1"
        contexts = of_pid(rdma(testbed, f"resource show ctx dev {device}"), pid)
        expect(len(contexts) == 1, f"contexts: {contexts}")
        pds = of_pid(rdma(testbed, f"resource show pd dev {device}"), pid)
        expect(len(pds) == 1 and pds[0]["ctxn"] == contexts[0]["ctxn"], f"PDs: {pds}")
        # 5 QPs, 2 MRs, an SRQ.
        expect(pds[0]["users"] == 8, f"PDs: {pds}")

        cqs = of_pid(rdma(testbed, f"-dd resource show cq dev {device}"), pid)
        expect(sorted(cq["cqe"] for cq in cqs) == sorted(program.made["cqes"]), f"CQs: {cqs}, not {program.made}")
        for cq in cqs:
            expect(cq["users"] == 5 and cq["drv_hw_cqes"] == cq["cqe"] + 1, f"CQ: {cq}")
        expect(len({cq["drv_hw_cqn"] for cq in cqs}) == 2, f"CQs: {cqs}")

        mrs = of_pid(rdma(testbed, f"-dd resource show mr dev {device}"), pid)
        for mr in program.made["mrs"]:
            # As JSON the tool shows 32 bits of a number, as text all.
            shown = one(mrs, lkey=f"{mr['lkey']:x}")
            expect(f"drv_iova 0x{mr['address']:x} " in testbed.run(f"rdma -dd resource show mr dev {device}"),
                   f"MR: {mr}")
            pages = (mr["address"] % 4096 + mr["length"] + 4095) // 4096
            expect(shown["rkey"] == f"{mr['rkey']:x}" and shown["mrlen"] == mr["length"] and
                   shown["pdn"] == pds[0]["pdn"] and shown["drv_iova"] & 0xFFFFFFFF == mr["address"] & 0xFFFFFFFF and
                   shown["drv_mtts"] * shown["drv_page_size"] >= mr["length"] and
                   shown["drv_mtts"] <= pages, f"MR: {shown}, not {mr}")

        qps = of_pid(rdma(testbed, f"-dd resource show qp {link}"), pid)
        expect(len(qps) == 5, f"QPs: {qps}")
        first = program.qpns("RC")[0]
        for qp in program.made["qps"]:
            shown = one(qps, lqpn=qp["qpn"])
            state = "RTS" if qp["qpn"] == first else "INIT"
            expect(shown["type"] == qp["type"] and shown["state"] == state and shown["pdn"] == pds[0]["pdn"],
                   f"QP: {shown}, not {qp} in {state}")
            expect(shown["drv_sq_wqes"] >= 16 and shown["drv_uar_page"] > 0, f"QP: {shown}")
            expect({shown["drv_send_cqn"], shown["drv_recv_cqn"]} == {cq["drv_hw_cqn"] for cq in cqs}, f"QP: {shown}")
        shown = one(qps, lqpn=first)
        expect(shown["rqpn"] == peer.qpns("RC")[0] and shown["sq-psn"] == 0x123 and shown["rq-psn"] == 0x123,
               f"QP: {shown}")
        send(program, peer, 0, 7)
        shown = one(rdma(testbed, f"resource show qp {link} lqpn {first}"), lqpn=first)
        expect(shown["sq-psn"] == 0x123 + 7, f"after 7 packets: {shown}")

        srqs = of_pid(rdma(testbed, f"-dd resource show srq dev {device}"), pid)
        expect(len(srqs) == 1 and srqs[0]["type"] == "BASIC" and srqs[0]["pdn"] == pds[0]["pdn"] and
               [str(qpn) for qpn in srqs[0]["lqpn"]] == [str(program.made["shared"])] and srqs[0]["drv_wqes"] >= 50, f"SRQs: {srqs}")

        # And the kernel's own.
        gsi = one(rdma(testbed, f"-dd resource show qp {link}"), lqpn=1)
        expect(gsi["type"] == "GSI" and gsi["comm"] == "ib_core" and gsi["drv_rq_posted"] >= gsi["drv_rq_completed"],
               f"GSI QP: {gsi}")
        one(rdma(testbed, f"-dd resource show cq dev {device}"), comm="ib_core", drv_uar_page=0)


@seen_test("rdma resource shows connections")
def connections(testbed):
    port = testbed.next_port()
    server = testbed.start(f"exec rping -s -a {testbed.server.address} -p {port} -S 1000", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "cm")
    listening = one(rdma(testbed, "resource show cm_id", testbed.server),
                    **{"src-addr": f"{testbed.server.address}:{port}"})
    expect(listening["state"] == "LISTEN" and listening["ps"] == "TCP" and listening["comm"] == "rping",
           f"listening: {listening}")
    client = testbed.start(f"exec rping -c -v -a {testbed.server.address} -p {port} -S 1000")
    client.wait_for("ping data")
    shown = one(rdma(testbed, "resource show cm_id"), **{"dst-addr": f"{testbed.server.address}:{port}"})
    qps = rdma(testbed, f"resource show qp link {testbed.client.device}/1")
    expect(shown["state"] == "CONNECT" and shown.get("qp-type") == "RC" and
           shown["src-addr"].startswith(f"{testbed.client.address}:"), f"connected: {shown}")
    one(qps, lqpn=shown["lqpn"], pid=shown["pid"], state="RTS")


def raw(testbed, words):
    """Raw dumps: the bytes of each object. The tool asks for QPs without and with a port: each is there twice."""
    return {bytes(entry["data"]) for entry in rdma(testbed, f"-r resource show {words}")}


def words(dump, offset, count=1):
    """Big-endian words of a dump."""
    return struct.unpack_from(f">{count}I", dump, offset)


@seen_test("raw dumps are contexts as the device has them")
def raw_dumps(testbed):
    with connected(testbed) as (program, peer):
        device, pid = testbed.client.device, program.pid
        send(program, peer, 0, 9)
        qpn = program.qpns("RC")[0]
        [dump] = [dump for dump in raw(testbed, f"qp link {device}/1") if words(dump, 0x14) == (qpn,)]
        expect(len(dump) == 192 and words(dump, 0x08)[0] >> 28 == 3 and words(dump, 0x08)[0] >> 16 & 0xFF == 0,
               f"QP: {dump.hex()}")
        expect(words(dump, 0x18) == (peer.qpns("RC")[0],) and words(dump, 0x6C) == (0x123 + 9,), f"QP: {dump.hex()}")
        cqn, = words(dump, 0x70)
        [shown] = raw(testbed, f"qp link {device}/1 lqpn {qpn}")
        expect(shown == dump, f"QP {qpn} alone: {shown.hex()}")

        [dump] = [dump for dump in raw(testbed, f"cq dev {device}") if words(dump, 0x2C) == (cqn,)]
        # The CQ's context, and behind it that of its EQ.
        expect(len(dump) == 128 and 1 << (words(dump, 0x0C)[0] >> 24) == program.made["cqes"][0] + 1,
               f"CQ: {dump.hex()}")
        expect(words(dump, 0x28) == (9,) and words(dump, 0x24) == (9,), f"CQ of 9 completions, polled: {dump.hex()}")
        eq, consumer, producer = dump[64:], *words(dump, 64 + 0x28, 2)
        expect(words(eq, 0x00)[0] & ~(1 << 8) == 1 << 24 | 1 << 18 and words(eq, 0x18) == words(dump, 0x14) and
               eq[0x0C] == 12 and (producer - consumer) % (1 << 32) <= 1 << 12, f"its EQ: {eq.hex()}")

        for mr in program.made["mrs"]:
            [dump] = [dump for dump in raw(testbed, f"mr dev {device}") if words(dump, 0x08) == (mr["lkey"],)]
            expect(len(dump) == 64 and struct.unpack_from(">QQ", dump, 0x10) == (mr["address"], mr["length"]) and
                   words(dump, 0x00)[0] & 0x10F == 0x10F, f"MR: {dump.hex()}, not {mr}")

        srqn = one(of_pid(rdma(testbed, f"-dd resource show srq dev {device}"), pid))["drv_hw_srqn"]
        [dump] = [dump for dump in raw(testbed, f"srq dev {device}") if words(dump, 0x04) == (srqn,)]
        expect(len(dump) == 64 and dump[0x10] <= 14 and 1 << dump[0x10] >= 50, f"SRQ: {dump.hex()}")


@seen_test("what only an administrator may see or do")
def unprivileged(testbed):
    with connected(testbed) as (program, _):
        device = testbed.client.device
        for kind, where in (("qp", f"link {device}/1"), ("cq", f"dev {device}"), ("mr", f"dev {device}"),
                            ("srq", f"dev {device}")):
            result = testbed.try_run(f"{NOBODY} rdma -r resource show {kind} {where}")
            expect(result.status != 0 and "Operation not permitted" in result.output and not result.stdout.strip("[] \n"),
                   f"a raw dump of {kind}: {result.status}, {result.output}")
        shown = json.loads(testbed.run(f"{NOBODY} rdma -j resource show mr dev {device}"))
        expect(len(shown) == 2 and not any("lkey" in mr or "rkey" in mr for mr in shown), f"keys are shown: {shown}")
        for command in (f"qp bind link {device}/1 lqpn {program.qpns('RC')[0]}", f"qp set link {device}/1 auto type on"):
            result = testbed.try_run(f"{NOBODY} rdma statistic {command}")
            expect(result.status != 0 and "Operation not permitted" in result.output, f"{command}: {result.output}")
        expect(not rdma(testbed, f"statistic qp show link {device}/1"), "a counter is there all the same")


# ---- rdma statistic

def sets(testbed, side, words=""):
    """The counters of QPs: {number: entry}."""
    return {entry["cntn"]: entry for entry in rdma(testbed, f"statistic qp show link {side.device}/1 {words}", side)}


def statistic(testbed, words, side=None):
    return testbed.run(f"rdma statistic qp {words}", side)


def totals(testbed, side):
    """The device's counters and the port's."""
    script = ("cd /sys/class/infiniband/{0}; for folder in hw_counters ports/1/hw_counters; do "
              "(cd $folder; echo 0 > lifespan; cat {1} | tr '\\n' ' '; echo); done").format(
                  side.device, " ".join(QP_COUNTERS))
    device, port = testbed.run(script, side).splitlines()
    return (dict(zip(QP_COUNTERS, map(int, line.split()))) for line in (device, port))


def expect_counts(entry, **counted):
    """These counters have these values, and all others 0."""
    wrong = {name: entry.get(name) for name in QP_COUNTERS if entry.get(name) != counted.get(name, 0)}
    expect(not wrong, f"counted {wrong}, expected {counted}, all: {entry}")


def expect_port_is_device(testbed):
    """Who counts in a set counts for the port too, once."""
    for side in testbed.sides:
        device, port = totals(testbed, side)
        expect(device == port, f"{side.device}: device {device}, port {port}")


@seen_test("counters of a QP: bound, exact, taken away", lines=True)
def bound(testbed):
    device = testbed.client.device
    with connected(testbed, 2) as (program, peer):
        counted, other = program.qpns("RC")[:2]
        send(program, peer, 0, 3)
        statistic(testbed, f"bind link {device}/1 lqpn {counted}")
        statistic(testbed, f"bind link {testbed.server.device}/1 lqpn {peer.qpns('RC')[0]}", testbed.server)
        [(number, entry)] = sets(testbed, testbed.client).items()
        expect(entry["lqpn"] == [counted] and {key for key in entry} >= set(QP_COUNTERS), f"bound: {entry}")
        expect_counts(entry)
        device_before, _ = totals(testbed, testbed.client)
        send(program, peer, 0, 100, 1000)
        send(program, peer, 1, 50)
        expected = {"tx_packets": 100, "tx_bytes": 100 * (SEND_BYTES + 1000),
                    "rx_packets": 100, "rx_bytes": 100 * ACK_BYTES}
        expect_counts(sets(testbed, testbed.client)[number], **expected)
        [theirs] = sets(testbed, testbed.server).values()
        expect_counts(theirs, rx_packets=100, rx_bytes=expected["tx_bytes"], tx_packets=100,
                      tx_bytes=expected["rx_bytes"], rx_send_requests=100)
        device_after, _ = totals(testbed, testbed.client)
        expect(device_after["tx_packets"] - device_before["tx_packets"] == 150, f"{device_before} {device_after}")
        expect_port_is_device(testbed)

        # The second joins the same counter.
        statistic(testbed, f"bind link {device}/1 lqpn {other} cntn {number}")
        send(program, peer, 1, 10, 1000)
        entry = sets(testbed, testbed.client)[number]
        expect(sorted(entry["lqpn"]) == sorted([counted, other]) and entry["tx_packets"] == 110, f"{entry}")
        # And the first leaves.
        statistic(testbed, f"unbind link {device}/1 cntn {number} lqpn {counted}")
        send(program, peer, 0, 20)
        entry = sets(testbed, testbed.client)[number]
        expect(entry["lqpn"] == [other] and entry["tx_packets"] == 110, f"{entry}")
        expect_port_is_device(testbed)
        # By its number all its QPs leave, and it is gone; a new one begins at 0.
        statistic(testbed, f"unbind link {device}/1 cntn {number}")
        expect(not sets(testbed, testbed.client), f"{sets(testbed, testbed.client)}")
        expect_port_is_device(testbed)
        statistic(testbed, f"bind link {device}/1 lqpn {counted}")
        [entry] = sets(testbed, testbed.client).values()
        expect_counts(entry)
        # A WRITE is one at the other end.
        program.do("write", qpn=counted, size=3000, address=peer.made["mrs"][1]["address"],
                   rkey=peer.made["mrs"][1]["rkey"])
        [theirs] = sets(testbed, testbed.server).values()
        expect(theirs["rx_write_requests"] == 1, f"{theirs}")
    # They went with the programs.
    expect(not sets(testbed, testbed.client) and not sets(testbed, testbed.server), "counters without QPs")
    expect_port_is_device(testbed)


@seen_test("counters of a QP go with it through RESET")
def through_reset(testbed):
    device = testbed.client.device
    with connected(testbed) as (program, peer):
        qpn = program.do("make", kind="RC")["qpns"][0]
        program.do("reset", qpn=qpn)
        statistic(testbed, f"bind link {device}/1 lqpn {qpn}")
        program.do("init", qpn=qpn)
        theirs = peer.do("make", kind="RC")["qpns"][0]
        program.do("connect", qpn=qpn, peer=theirs, gid=peer.made["gid"])
        peer.do("connect", qpn=theirs, peer=qpn, gid=program.made["gid"])
        peer.do("receive", qpn=theirs, count=5)
        program.do("send", qpn=qpn, count=5, size=64)
        [entry] = sets(testbed, testbed.client).values()
        expect_counts(entry, tx_packets=5, tx_bytes=5 * (SEND_BYTES + 64), rx_packets=5, rx_bytes=5 * ACK_BYTES)


@seen_test("counters by themselves: by type, by program")
def automatic(testbed):
    device = testbed.client.device

    def mode():
        return one(rdma(testbed, f"statistic qp mode link {device}/1"))["mode"]

    expect(mode().startswith("qp auto off"), f"mode: {mode()}")
    program = Program(testbed, testbed.client)
    try:
        statistic(testbed, f"set link {device}/1 auto type on")
        expect(mode().startswith("qp auto type on"), f"mode: {mode()}")
        expect(not sets(testbed, testbed.client), "QPs that were there already are counted")
        new = {kind: program.do("make", kind=kind, count=2)["qpns"] for kind in ("RC", "UD")}
        by_type = {entry["qp-type"]: entry for entry in sets(testbed, testbed.client).values()}
        expect({kind: sorted(entry["lqpn"]) for kind, entry in by_type.items()} == new, f"{by_type}, not {new}")
        # Programs no one here wrote: each counts to its type, and the counter stays while a QP names it.
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 1000, 200)
        entry = one(sets(testbed, testbed.client, "qp-type RC").values())
        # A message and an acknowledgement each way; the last acknowledgement may find its QP gone.
        expect(399 <= entry["tx_packets"] <= 400 and 399 <= entry["rx_packets"] <= 400 and
               entry["rx_send_requests"] == 200, f"200 messages each way: {entry}")
        expect(one(sets(testbed, testbed.client, "qp-type UD").values())["tx_packets"] == 0, "UD QPs have sent")
        expect_port_is_device(testbed)
        for kind in new:
            program.do("destroy", qpns=new[kind])
        expect(not sets(testbed, testbed.client), f"without QPs: {sets(testbed, testbed.client)}")

        statistic(testbed, f"set link {device}/1 auto pid on")
        others = Program(testbed, testbed.client)
        mine = program.do("make", kind="RC", count=1)["qpns"] + program.do("make", kind="UD", count=1)["qpns"]
        by_pid = {entry["pid"]: sorted(entry["lqpn"]) for entry in sets(testbed, testbed.client).values()}
        expect(by_pid == {program.pid: sorted(mine), others.pid: sorted(qp["qpn"] for qp in others.made["qps"])},
               f"{by_pid}")
        others.end()
        result = testbed.try_run(f"rdma statistic qp bind link {device}/1 lqpn {program.qpns('RC')[0]}")
        expect(result.status != 0, "bound manually though counters are bound automatically")
        program.do("destroy", qpns=mine)
    finally:
        statistic(testbed, f"set link {device}/1 auto off")
    expect(mode().startswith("qp auto off"), f"mode: {mode()}")
    program.end()
    expect(testbed.run(f"rdma statistic mode supported link {device}/1").strip() in ("", f"link {device}/1"),
           "counters that can be switched")


@seen_test("counters of QPs: what must be refused", limit_s=90)
def refused(testbed):
    device = testbed.client.device
    program = Program(testbed, testbed.client)
    qpn, second = program.qpns("RC")[:2]

    def refuse(words, said):
        result = testbed.try_run(f"rdma statistic qp {words}")
        expect(result.status != 0 and re.search(said, result.output), f"`{words}`: {result.status}, {result.output}")

    refuse(f"bind link {device}/1 lqpn 54321", "No such file")
    refuse(f"bind link {device}/1 lqpn {qpn} cntn 99", "No such file")
    refuse(f"bind link {device}/2 lqpn {qpn}", "")
    refuse(f"unbind link {device}/1 cntn 1 lqpn {qpn}", "Invalid argument")
    statistic(testbed, f"bind link {device}/1 lqpn {qpn}")
    [number] = sets(testbed, testbed.client)
    refuse(f"bind link {device}/1 lqpn {qpn}", "Cannot allocate memory|Invalid argument")
    refuse(f"bind link {device}/1 lqpn {qpn} cntn {number}", "Invalid argument")
    refuse(f"unbind link {device}/1 cntn {number} lqpn {second}", "Invalid argument")
    refuse(f"unbind link {device}/1 cntn {number + 1} lqpn {qpn}", "Invalid argument")
    refuse(f"set link {device}/1 auto type on", "busy|bound QP")
    expect(list(sets(testbed, testbed.client)) == [number], f"{sets(testbed, testbed.client)}")

    # 255 sets: one is in use, the last of 255 more finds none.
    many = program.do("make", kind="RC", count=255)["qpns"]
    lines = "".join(f"statistic qp bind link {device}/1 lqpn {each}\n" for each in many[:-1])
    testbed.run(f"rdma -b - <<'EOF'\n{lines}EOF")
    expect(len(sets(testbed, testbed.client)) == 255, f"{len(sets(testbed, testbed.client))} sets")
    refuse(f"bind link {device}/1 lqpn {many[-1]}", "Cannot allocate memory")
    program.do("destroy", qpns=many[:1])
    statistic(testbed, f"bind link {device}/1 lqpn {many[-1]}")
    program.end()
    expect(not sets(testbed, testbed.client), "sets without QPs")


@seen_test("objects come and go while they are shown", limit_s=120)
def meanwhile(testbed):
    """Each request succeeds, or is told that the object is gone; nothing is said in the kernel log."""
    device = testbed.client.device
    program = Program(testbed, testbed.client)
    looks = [f"-dd resource show {kind}" for kind in ("qp", "cq", "mr", "pd", "ctx", "srq", "cm_id")]
    looks += [f"-r resource show {kind}" for kind in ("qp", "cq", "mr", "srq")] + ["statistic qp show"]
    looker = testbed.start("while true; do " +
                           "; ".join(f"rdma {look} > /dev/null || echo '{look}'" for look in looks) +
                           "; echo round; done")
    testbed.start(f"while true; do cat /sys/class/infiniband/{device}/hw_counters/* "
                  f"/sys/class/infiniband/{device}/ports/1/hw_counters/* "
                  f"/sys/class/infiniband/{device}/ports/1/counters/* > /dev/null; done")
    statistic(testbed, f"set link {device}/1 auto pid,type on")
    try:
        for _ in range(6):
            program.do("destroy", qpns=program.do("make", kind="RC", count=8)["qpns"])
            pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 1000, 5)
    finally:
        statistic(testbed, f"set link {device}/1 auto off")
    rounds = looker.text(1).count("round")
    failed = looker.text(1).replace("round\n", "")
    expect(rounds >= 3 and not failed.strip() and not looker.text(2), f"{rounds} rounds: {looker.output[-1000:]}")
    testbed.note(f"{rounds} rounds")
    program.end()


# ---- counters of device and port

def sysfs(testbed, side, folder):
    said = testbed.run(f"cd /sys/class/infiniband/{side.device}/{folder}; grep . *", side)
    return {name: int(value) for name, _, value in (line.partition(":") for line in said.splitlines())}


@seen_test("hw_counters of device and port, and rdma statistic")
def hardware_counters(testbed):
    side = testbed.client
    device, port = (sysfs(testbed, side, folder) for folder in ("hw_counters", "ports/1/hw_counters"))
    qmp = testbed.guest.qmp("qom-get", path="/machine/peripheral/hca1", property="stats")
    expect(set(device) - {"lifespan"} == set(qmp) == set(port) - {"lifespan"},
           f"names: {set(device) ^ set(qmp)} {set(port) ^ set(qmp)}")
    shown = one(rdma(testbed, f"statistic show link {side.device}/1"))
    expect(set(qmp) <= set(shown), f"rdma statistic lacks {set(qmp) - set(shown)}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 1000, 100)
    testbed.run(f"echo 0 > {side.counters}/lifespan", side)
    after = one(rdma(testbed, f"statistic show link {side.device}/1"))
    expect(after["rx_send_requests"] - shown["rx_send_requests"] == 100, f"{shown} {after}")
    expect_port_is_device(testbed)


@seen_test("port counters as of InfiniBand", expected_log=(r"link (becomes ready|is (down|up))",), checked=SENT)
def port_counters(testbed):
    """Packets, data in units of four octets, errors and the link, against what is known to have happened.

    A packet that counts as an error is among those that the device keeps, by its header.
    """
    side = testbed.client
    with connected(testbed) as (program, peer):
        before = sysfs(testbed, side, "ports/1/counters")
        old, _ = totals(testbed, side)
        send(program, peer, 0, 100, 1000)
        after = sysfs(testbed, side, "ports/1/counters")
        new, _ = totals(testbed, side)
    octets = 100 * (SEND_BYTES + 1000), 100 * ACK_BYTES
    expect((new["tx_bytes"] - old["tx_bytes"], new["rx_bytes"] - old["rx_bytes"]) == octets, f"{old} {new}")
    for name, rise in (("port_xmit_packets", 100), ("port_rcv_packets", 100)):
        expect(after[name] - before[name] == rise, f"{name}: {before[name]}, {after[name]}")
    for name, key in (("port_xmit_data", "tx_bytes"), ("port_rcv_data", "rx_bytes")):
        expect(before[name] == old[key] // 4 and after[name] == new[key] // 4,
               f"{name}: {before[name]}, {after[name]}, with {key} {old[key]}, {new[key]}")
    unchanged = {name for name in before if name not in ("port_xmit_packets", "port_rcv_packets", "port_xmit_data",
                                                         "port_rcv_data")}
    expect(all(before[name] == after[name] for name in unchanged), f"{before} {after}")

    # A packet to UDP port 4791 that is too short for its headers; the sockets layer adds what is below.
    testbed.run("python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                f"s.sendto(b'x' * 5, ('{side.address}', 4791))\"", testbed.server)
    testbed.wait_until(
        lambda: sysfs(testbed, side, "ports/1/counters")["port_rcv_errors"] == after["port_rcv_errors"] + 1,
        "an error counted")
    kept = testbed.guest.qmp("qom-get", path="/machine/peripheral/hca1", property="errors")[-1]
    expect(kept["why"] == "HEADERS" and bytes.fromhex(kept["header"])[36:38] == (4791).to_bytes(2, "big"), f"kept: {kept}")
    set_link(testbed, 1, False)
    try:
        testbed.wait_until(lambda: sysfs(testbed, side, "ports/1/counters")["link_downed"] == after["link_downed"] + 1,
                           "a link down counted")
    finally:
        set_link(testbed, 1, True)
    testbed.wait_until(lambda: "state ACTIVE" in testbed.run(f"rdma link show {side.device}/1"), "the port up")
    testbed.await_gids(side)


@seen_test("port counters as another machine asks for them")
def asked_for(testbed):
    """Over the wire, by QP 1; what is no request for a counter gets the status of IBA vol 1, 13.4.7.

    At an IPv6 GID: Linux tells a response by its GRH's GID, where an IPv4 packet has none.
    """
    peer = testbed.roce_gids(testbed.server)[testbed.server.gid("link-local")]

    def ask(*requests):
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        said = testbed.run(f"python3 /share/pma.py {testbed.client.device} {testbed.client.gid('link-local')} {peer} "
                           f"<<'EOF'\n{lines}EOF")
        return [json.loads(line) for line in said.splitlines()]

    refused = [({"attr": 0x10}, 0x0C), ({"method": 2}, 0x0C), ({"data": "0002"}, 0x1C), ({"data": "0000"}, 0x1C),
               ({"attr": 0xFFFF}, 0x0C)]
    before = sysfs(testbed, testbed.server, "ports/1/counters")
    answers = ask({}, {"attr": 0x1D}, {"attr": 1}, *(request for request, _ in refused))
    after = sysfs(testbed, testbed.server, "ports/1/counters")
    expect(all(answer["method"] == 0x81 and answer["class"] == 4 and answer["same"] for answer in answers), f"{answers}")
    for answer, (request, status) in zip(answers[3:], refused):
        expect(answer["status"] == status, f"{request}: {answer}")
    # The MADs themselves are among what is counted.
    data = [bytes.fromhex(answer["data"]) for answer in answers]
    expect([answer["status"] for answer in answers[:3]] == [0, 0, 0], f"{answers[:3]}")
    for counted, (offset, form) in (("port_xmit_packets", (32, ">I")), ("port_rcv_packets", (36, ">I"))):
        value, = struct.unpack_from(form, data[0], offset)
        expect(before[counted] <= value <= after[counted], f"{counted}: {before[counted]} {value} {after[counted]}")
    value, = struct.unpack_from(">Q", data[1], 32)
    expect(before["port_rcv_packets"] < value <= after["port_rcv_packets"], f"port_rcv_packets: {value}")
    expect(after["port_rcv_packets"] - before["port_rcv_packets"] == len(answers) and
           after["port_xmit_packets"] - before["port_xmit_packets"] == len(answers), f"{before} {after}")
    expect(data[2][:4] == b"\x01\x01\x05\x00", f"ClassPortInfo: {data[2].hex()}")


# ---- ethtool

def ethtool_counters(testbed, side):
    said = testbed.run(f"ethtool -S {side.netdev}", side)
    return {name: int(value) for name, value in re.findall(r"^ +(\w+): (\d+)$", said, re.MULTILINE)}


@seen_test("ethtool counts the frames of a ping flood")
def flood(testbed):
    """Other frames, such as IPv6's own, may come between, and only ever add: one of five floods must be by itself."""
    count, names = 500, ("raw_tx_packets", "raw_rx_packets", "ring_tx_packets", "ring_rx_packets")
    testbed.run(f"ping -n -q -c 1 -W 5 {testbed.server.address}")
    seen = []
    for _ in range(5):
        before = [ethtool_counters(testbed, side) for side in testbed.sides]
        testbed.run(f"ping -n -q -f -c {count} -s 100 {testbed.server.address}")
        after = [ethtool_counters(testbed, side) for side in testbed.sides]
        rises = [[new[name] - old[name] for name in names] for old, new in zip(before, after)]
        octets = [new["ring_tx_bytes"] - old["ring_tx_bytes"] for old, new in zip(before, after)]
        expect(all(rise >= count for end in rises for rise in end), f"{rises}")
        seen.append((rises, octets))
        if rises == [[count] * 4] * 2:
            expect(octets == [count * (14 + 20 + 8 + 100)] * 2, f"{octets} octets")
            break
    else:
        raise Failure(f"never {count} frames: {seen}")
    dropped = [end[name] for end in after for name in ("ring_tx_dropped", "ring_rx_dropped", "ring_restarts")]
    expect(not any(dropped), f"{after}")
    groups = testbed.run(f"ethtool -S {testbed.client.netdev} --groups eth-mac")
    expect(f"FramesTransmittedOK: {after[0]['ring_tx_packets']}" in groups, f"{groups} {after[0]}")


@seen_test("ethtool tells what the interface is")
def ethtool(testbed):
    for side in testbed.sides:
        said = testbed.run(f"ethtool -i {side.netdev}", side)
        expect("driver: hghca" in said and f"bus-info: {side.pci}" in said and
               re.search(r"^firmware-version: \d+\.\d+$", said, re.MULTILINE) and "supports-statistics: yes" in said, said)
        said = testbed.run(f"ethtool -g {side.netdev}", side)
        expect(re.findall(r"^(RX|TX):\s+(\d+)$", said, re.MULTILINE) == [("RX", "512"), ("TX", "512")] * 2, said)
        said = testbed.run(f"ethtool -l {side.netdev}", side)
        expect(re.findall(r"^Combined:\s+(\d+)$", said, re.MULTILINE) == ["1", "1"], said)
        # There is nothing that holds interrupts back.
        for command in (f"ethtool -c {side.netdev}", f"ethtool -C {side.netdev} rx-usecs 10",
                        f"ethtool -G {side.netdev} rx 64"):
            result = testbed.try_run(command, side)
            expect(result.status != 0 and "not supported" in result.output, f"`{command}`: {result.output}")


# ---- tracepoints

@contextlib.contextmanager
def traced(testbed, events):
    """Trace these events while the block runs; yields a function that gives what was traced, as (event, {field: text})."""
    mount = f"mountpoint -q {TRACING} || mount -t tracefs tracefs {TRACING}"
    testbed.run(f"{mount}; cd {TRACING} && echo 0 > tracing_on && echo > trace && echo 4096 > buffer_size_kb && "
                f"echo {' '.join(f'hghca:hghca_{event}' for event in events)} > set_event && echo 1 > tracing_on")

    def read():
        found = []
        for line in testbed.run(f"cat {TRACING}/trace").splitlines():
            match = re.search(r" hghca_(\w+): (\S+) (.*)$", line)
            if match:
                fields = dict(re.findall(r"(\w+)=(\S+)", match[3]))
                found.append((match[1], {"dev": match[2], "text": match[3], **fields}))
        return found

    try:
        yield read
    finally:
        testbed.run(f"cd {TRACING}; echo > set_event; echo 0 > tracing_on; echo > trace")


def events_of(found, event, **wanted):
    return [fields for name, fields in found
            if name == event and all(fields.get(key) == value for key, value in wanted.items())]


@seen_test("trace events of commands", expected_log=(r"command QUERY_STATS \(0xe02\), modifiers 0x0 0x0: INTERNAL_ERR \(0x1\)$",))
def trace_commands(testbed):
    """They are polled, with one token; lacking.c sees those by event."""
    side = testbed.client
    with traced(testbed, ["cmd_post", "cmd_done"]) as read:
        program = Program(testbed, side)
        program.end()
        testbed.guest.qmp("qom-set", path="/machine/peripheral/hca1", property="fail-command", value=1)
        testbed.try_run(f"cat /sys/class/infiniband/{side.device}/hw_counters/tx_packets")
        found = read()
    qpn = f"0x{program.qpns('RC')[0]:x}"
    # RST2INIT, and ERR2RST without a mailbox as it is destroyed.
    for command, op, modifier in (("RST2INIT_QPEE", "0x19", "0"), ("ERR2RST_QPEE", "0x21", "3")):
        wanted = {"command": command, "op": op, "in_modifier": qpn, "op_modifier": modifier, "dev": side.pci}
        posted, done = (events_of(found, event, **wanted) for event in ("cmd_post", "cmd_done"))
        expect(len(posted) == len(done) == 1, f"{op} of QP {qpn}: {posted} {done}")
        expect(posted[0]["token"] == done[0]["token"] and posted[0]["text"].endswith(" poll"), f"{posted} {done}")
        expect(done[0]["status"] == "0x0" and done[0]["err"] == "0" and 0 < int(done[0]["latency_ns"]) < 10**10, f"{done}")
    made = len(events_of(found, "cmd_done", op="0x16"))
    expect(made == 2, f"{made} SW2HW_CQ for 2 CQs")
    expect(len(events_of(found, "cmd_post")) == len(events_of(found, "cmd_done")), "commands without an end")
    tokens = [fields["token"] for fields in events_of(found, "cmd_post")]
    expect(len(tokens) > 10 and set(tokens) == {"0xffff"}, f"tokens: {tokens}")
    failed = events_of(found, "cmd_done", status="0x1")
    expect(len(failed) == 1 and failed[0]["op"] == "0xe02", f"the command that was made to fail: {failed}")


@seen_test("idle memory of contexts, kept and given back")
def idle_icm(testbed):
    """The first SRQ of an HCA maps memory for the contexts of SRQs. The next one finds it, until memory is short."""
    side = testbed.client

    def count(command):
        return len(events_of(read(), "cmd_done", command=command, dev=side.pci, status="0x0"))

    testbed.run("echo 2 > /proc/sys/vm/drop_caches")
    with traced(testbed, ["cmd_done"]) as read:
        Program(testbed, side).end()
        mapped = count("MAP_ICM")
        expect(mapped > 0, "no memory was mapped for the first SRQ")
        for _ in range(3):
            Program(testbed, side).end()
        # The numbers of QPs go on, so that the QPs may have reached another block.
        expect(count("MAP_ICM") <= mapped + 1, f"memory was mapped again: {count('MAP_ICM')} times, first {mapped}")
        unmapped = count("UNMAP_ICM")
        testbed.run("echo 2 > /proc/sys/vm/drop_caches")
        testbed.wait_until(lambda: count("UNMAP_ICM") > unmapped, "memory given back")
        mapped = count("MAP_ICM")
        Program(testbed, side).end()
        expect(count("MAP_ICM") > mapped, "nothing was mapped after all was given back")


@seen_test("trace events of doorbells and completions")
def trace_doorbells(testbed):
    """The net device and the CM post and poll in the kernel."""
    side, count = testbed.client, 20
    names = ("cqe", "ring_sq", "ring_cq", "ring_eq", "event")
    with traced(testbed, names) as read:
        before = ethtool_counters(testbed, side)
        testbed.run(f"ping -n -q -c {count} -i 0.01 -W 5 {testbed.server.address}")
        after = ethtool_counters(testbed, side)
        port = testbed.next_port()
        testbed.pair(f"rping -s -a {testbed.server.address} -p {port} -C 1",
                     f"rping -c -a {testbed.server.address} -p {port} -C 1", port)
        found = [(event, fields) for event, fields in read() if fields["dev"] == side.pci]
    for event in names:
        expect(events_of(found, event), f"no event {event} of {side.device}")
    # The net device's QP is 2, the GSI QP 1 (a SEND is 0xa).
    sent = sum(int(fields["count"]) for fields in events_of(found, "ring_sq", qpn="0x2", opcode="0xa"))
    expect(sent >= after["ring_tx_packets"] - before["ring_tx_packets"] >= count, f"{sent} frames told of")
    frames = [fields for fields in events_of(found, "cqe", qpn="0x2") if fields["text"].split()[3] == "recv"]
    pings = [fields for fields in frames if fields["byte_cnt"] == str(14 + 20 + 8 + 56)]
    expect(len(pings) == count, f"{len(pings)} answers to {count} pings: {frames}")
    expect(all(fields["syndrome"] == "0x0" for fields in events_of(found, "cqe")), "completions in error")
    # The slots of the receive ring come one after the other.
    offsets = [int(fields["wqe"], 16) for fields in frames]
    expect(all((new - old) % (512 * 64) == 64 for old, new in zip(offsets, offsets[1:])), f"{offsets}")
    expect(events_of(found, "ring_sq", qpn="0x1") and events_of(found, "cqe", qpn="0x1", opcode="0xa"),
           "nothing of the CM's datagrams")
    # Completion events arm and are armed for: of the net device's CQ there is one for each time it was armed, or none yet.
    cqn = frames[0]["cqn"]
    armed = len(events_of(found, "ring_cq", number=cqn, command="2"))
    told = len(events_of(found, "event", type="COMP", data=cqn))
    expect(armed and abs(armed - told) <= 1, f"CQ {cqn}: armed {armed} times, {told} events")


@seen_test("trace events of the link", expected_log=(r"link (becomes ready|is (down|up))",))
def trace_link(testbed):
    side = testbed.client
    with traced(testbed, ["event"]) as read:
        set_link(testbed, 1, False)
        set_link(testbed, 1, True)
        testbed.wait_until(lambda: len(events_of(read(), "event", type="PORT_CHANGE")) >= 2, "two events of the link")
        found = events_of(read(), "event", type="PORT_CHANGE")
    expect([fields["subtype"] for fields in found] == ["1", "4"] and {fields["dev"] for fields in found} == {side.pci},
           f"{found}")
    testbed.wait_until(lambda: "state ACTIVE" in testbed.run(f"rdma link show {side.device}/1"), "the port up")
    testbed.await_gids(side)


@seen_test("versions, as devlink and standard tools show them", tier=QUICK, lines=True)
def versions(testbed):
    """The number of the board is that of the interface document, 16.2; the rest is compared with what others know."""
    for side in testbed.sides:
        root = dataclasses.replace(side, netns=None)
        said = json.loads(testbed.run(f"devlink -j dev info pci/{side.pci}", root))["info"][f"pci/{side.pci}"]
        revision = testbed.run(f"cat /sys/bus/pci/devices/{side.pci}/revision", root).strip()
        (link,) = rdma(testbed, f"dev show {side.device}", side)
        expect(said == {"driver": "hghca",
                        "versions": {"fixed": {"board.id": BOARD, "asic.rev": f"{int(revision, 0):x}"},
                                     "running": {"fw": link["fw"]}}}, f"{said}; revision {revision}, {link}")
        shown = testbed.run(f"ibv_devinfo -d {side.device}", side)
        for name, value in (("board_id", BOARD), ("hw_ver", f"0x{int(revision, 0):X}"), ("fw_ver", link["fw"])):
            expect(re.search(rf"^\s*{name}:\s+{value}$", shown, re.MULTILINE), f"{name} is not {value}: {shown}")


@seen_test("the port's rate is that of its Ethernet device", lines=True)
def rate(testbed):
    """100 Gbit/s, with which the device starts, are four lanes of EDR."""
    for side in testbed.sides:
        speed = testbed.run(f"cat /sys/class/net/{side.netdev}/speed", side).strip()
        shown = testbed.run(f"cat /sys/class/infiniband/{side.device}/ports/1/rate", side).strip()
        expect((speed, shown) == ("100000", "100 Gb/sec (4X EDR)"), f"{side.device}: {shown}, {speed} Mbit/s")


@seen_test("adaptive moderation of the kernel's CQs, set by an administrator", lines=True)
def adaptive_moderation(testbed):
    side = testbed.client

    def enabled():
        (link,) = rdma(testbed, f"-d dev show {side.device}", side)
        return link["adaptive-moderation"]

    expect(enabled() is True, "it is disabled at the start")
    try:
        denied = testbed.try_run(f"{NOBODY} rdma dev set {side.device} adaptive-moderation off", side)
        expect(denied.status and enabled() is True, f"anybody may: {denied.output}")
        for state in ("off", "on"):
            testbed.run(f"rdma dev set {side.device} adaptive-moderation {state}", side)
            expect(enabled() is (state == "on"), f"after {state}: {enabled()}")
    finally:
        testbed.run(f"rdma dev set {side.device} adaptive-moderation on", side)
