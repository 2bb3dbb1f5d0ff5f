# SPDX-License-Identifier: GPL-2.0-or-later
"""Properties of -device hghca: what is refused, and that what is taken works."""

import struct

import machine
from hca import (BAD_PARAM, BAR0_BYTES, BELLS_BYTES, CLOSE_HCA, EQ_ARM, HCR, INIT_HCA, NOP, NOP_MODIFIER, OK, PAGE,
                 QUERY_DEV_LIM, RESET, UAR_PAGE, Hca)

# Interface document, 4.2; docs/reference/rsnic.rst, 6.
SRQ, UC, MEM_MGT, XRC, MULTICAST, PLACEMENT, ODP, DEVICE_MEMORY, RSS = (1 << bit for bit in (7, 8, 9, 10, 11, 16, 17, 18, 19))
VENDOR_OPS, SYNC_COMMANDS, STATUS_RECORD = 1 << 23, 1 << 24, 1 << 27
EVERY_CAPABILITY = (1 << 28) - 1
OF_PROFILE = {"full": EVERY_CAPABILITY & ~VENDOR_OPS, "base": 0,
              "rsnic": EVERY_CAPABILITY & ~(SRQ | UC | MEM_MGT | XRC | MULTICAST | PLACEMENT | ODP | DEVICE_MEMORY | RSS |
                                            SYNC_COMMANDS | STATUS_RECORD)}
# Interface document, 4.2: what INIT_HCA takes only with another.
DEPENDS = {SRQ: XRC, SYNC_COMMANDS: STATUS_RECORD}
CAPABILITIES_AT, MODERATION_SCALE_AT, TABLE_OF_SRQS, TABLE_OF_GROUPS = 0x3c, 0x6a, 3 << 20 | 3, 5 << 20 | 4


def device(properties):
    return ("-netdev", "hubport,hubid=0,id=n", "-device", f"hghca,netdev=n,addr=4.0,{properties}")


def refusal(properties):
    """What QEMU says of them when it ends."""
    try:
        with machine.started(*device(properties)):
            return "nothing"
    except AssertionError as error:
        return str(error)


def test_slice_refused():
    """A slice of no work, or of too much, is refused with the bounds"""
    for value in (0, 65537):
        said = refusal(f"slice={value}")
        if f"property 'slice' must be from 1 to 65536, not {value}" not in said:
            raise AssertionError(f"slice={value}: {said}")


def test_verify_refused():
    """A value of `verify` that does not exist is refused with those that do, also while the HCA works"""
    wanted = "property 'verify' must be 'all' or 'remote', not 'none'"
    said = refusal("verify=none")
    if wanted not in said:
        raise AssertionError(said)
    with machine.started(*device("id=hca,verify=remote")) as m:
        try:
            m.qmp("qom-set", path="/machine/peripheral/hca", property="verify", value="none")
            said = "nothing"
        except AssertionError as error:
            said = str(error)
        if wanted not in said or m.qmp("qom-get", path="/machine/peripheral/hca", property="verify") != "remote":
            raise AssertionError(said)


def test_taken():
    """With the least and the largest slice, and without the hook of QEMU's lock, the HCA works"""
    for properties in ("slice=1", "slice=65536", "bql-hook=off", "bql-hook=on"):
        with machine.started(*device(properties)) as m:
            hca = Hca(m, 4, 0xe0000000, 0x1000000)
            hca.enable()
            hca.start()
            hca.create_qp(sends=3)
            m.write32(hca.sq_bell, hca.QPN << 8 | 1)
            m.step()
            found = [entry[0x10] for entry in hca.entries(hca.CQ_REGION)]
            if found != [5, 5, 5] or not hca.answers():
                raise AssertionError(f"{properties}: syndromes of flushed sends {found}")


def test_failed_reads():
    """After `fail` every read of BAR0 and of the doorbells, of any width, aligned or not, gives all ones until the reset"""
    with machine.started(*device("id=hca")) as m:
        hca = Hca(m, 4, 0xe0000000, 0x1000000)
        hca.enable()
        hca.start()
        places = [hca.registers + at for at in (0, HCR, HCR + 0x18, RESET, BAR0_BYTES - 16)]
        places += [hca.bells + at for at in (0, EQ_ARM, UAR_PAGE * PAGE, BELLS_BYTES - 16)]
        reads = [(place + shift, width) for place in places for width in (1, 2, 4, 8) for shift in range(8)]
        answers = {m.read_number(*read) == (1 << 8 * read[1]) - 1 for read in reads}
        if answers != {False}:
            raise AssertionError("all ones before the failure")
        m.qmp("qom-set", path="/machine/peripheral/hca", property="fail", value="now")
        wrong = [f"{address:#x} {width}: {found:#x}" for address, width in reads
                 for found in [m.read_number(address, width)] if found != (1 << 8 * width) - 1]
        if wrong:
            raise AssertionError(f"{len(wrong)} reads, the first: {wrong[:4]}")
        m.write32(hca.registers + RESET, 1)
        said = m.qmp("qom-get", path="/machine/peripheral/hca", property="fail")
        hca.start()
        if said != "ok" or hca.status(NOP, NOP_MODIFIER):
            raise AssertionError(f"after the reset: {said}")


def advertised(hca):
    hca.command(QUERY_DEV_LIM)
    return struct.unpack(">I", hca.m.read(hca.outbox + CAPABILITIES_AT, 4))[0]


def test_moderation_scale():
    """`moderation-scale` is what QUERY_DEV_LIM has; by default 1, as the CPU is not emulated, and more than 255 is refused"""
    for properties, scale in (("slice=128", 1), ("moderation-scale=1", 1), ("moderation-scale=255", 255)):
        with machine.started(*device(properties)) as m:
            hca = Hca(m, 4, 0xe0000000, 0x1000000)
            hca.enable()
            hca.command(QUERY_DEV_LIM)
            found = hca.m.read(hca.outbox + MODERATION_SCALE_AT, 1)[0]
            if found != scale:
                raise AssertionError(f"{properties}: {found}, not {scale}")
    said = refusal("moderation-scale=256")
    if "expects uint8_t" not in said:
        raise AssertionError(said)


def initialized_with(hca, capabilities):
    """The status of INIT_HCA that turns these on, with all tables."""
    mailbox = bytearray(hca.init_mailbox(capabilities))
    struct.pack_into(">Q", mailbox, 0x00, TABLE_OF_GROUPS)
    struct.pack_into(">Q", mailbox, 0x28, TABLE_OF_SRQS)
    status = hca.status(INIT_HCA, mailbox=bytes(mailbox))
    if status == OK:
        hca.command(CLOSE_HCA)
    return status


def test_capabilities():
    """Each capability alone absent: QUERY_DEV_LIM does not have it, INIT_HCA takes all others, and refuses it"""
    for profile, every in OF_PROFILE.items():
        with machine.started(*device(f"id=hca,profile={profile}")) as m:
            hca = Hca(m, 4, 0xe0000000, 0x1000000)
            hca.enable()
            wrong = []
            for bit in range(32):
                m.qmp("qom-set", path="/machine/peripheral/hca", property="capabilities", value=0xffffffff & ~(1 << bit))
                wanted = every & ~(1 << bit)
                takes = wanted & ~DEPENDS.get(1 << bit, 0)
                found = (advertised(hca), initialized_with(hca, takes), initialized_with(hca, takes | 1 << bit))
                if found != (wanted, OK, BAD_PARAM):
                    wrong.append((bit, *found))
            if wrong:
                raise AssertionError(f"{profile}: bit, QUERY_DEV_LIM's, statuses without and with it: {wrong}")
            # The last bit is of no capability. A reset does not change the property.
            m.qmp("qom-set", path="/machine/peripheral/hca", property="capabilities", value=1)
            m.write32(hca.registers + RESET, 1)
            if advertised(hca) != every & 1:
                raise AssertionError(f"{profile}: after a reset: {advertised(hca):#x}")
        with machine.started(*device(f"profile={profile},capabilities=6")) as m:
            hca = Hca(m, 4, 0xe0000000, 0x1000000)
            hca.enable()
            if advertised(hca) != every & 6:
                raise AssertionError(f"{profile}: of 6 from the start: {advertised(hca):#x}")
