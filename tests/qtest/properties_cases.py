# SPDX-License-Identifier: GPL-2.0-or-later
"""Properties of -device hghca: what is refused, and that what is taken works."""

import machine
from hca import BAR0_BYTES, BELLS_BYTES, EQ_ARM, HCR, NOP, NOP_MODIFIER, PAGE, RESET, UAR_PAGE, Hca


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
