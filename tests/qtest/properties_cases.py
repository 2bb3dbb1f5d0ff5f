# SPDX-License-Identifier: GPL-2.0-or-later
"""Properties of -device hghca: what is refused, and that what is taken works."""

import machine
from hca import Hca


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
