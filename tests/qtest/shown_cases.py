# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU shows of a running HCA: the QPs used last, and the interrupts."""

import jingzhao as jz
from base_cases import adapters, done, pair, pattern, same
from hca import Machine

OWN, THEIRS = 0x123456, 0x654321    # first PSNs that base_cases.connect() gives
LENGTH, PACKETS = 5000, 5           # with an MTU of 1024


def shown(m, number):
    return m.qmp("qom-get", path=f"/machine/peripheral/hca{number}", property="qps")


def row(qp, sent, received, outstanding):
    return {"qpn": qp.qpn, "service": "RC", "state": "RTS", "peer": qp.peer.qpn, "sent": sent, "received": received,
            "outstanding": outstanding}


def test_shown_qps():
    """The property `qps` has the QPs with their PSNs and what is not acknowledged, the one used last first"""
    with adapters("full", "full") as (m, a, b):
        same(shown(m, 1), [], "QPs before there are any")
        x, y = pair(a, b, jz.RC)
        others = pair(a, b, jz.RC)
        m.write(a.data.memory, pattern(LENGTH, 1))
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
        done(x, jz.OP_WRITE, LENGTH, "WRITE")
        same(shown(m, 1), [row(x, OWN + PACKETS, THEIRS, 0), row(others[0], OWN, THEIRS, 0)], "QPs of the requester")
        same(shown(m, 2), [row(y, THEIRS, OWN + PACKETS, 0), row(others[1], THEIRS, OWN, 0)], "QPs of the responder")
        m.qmp("set_link", name="n2", up=False)
        others[0].post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
        same(shown(m, 1)[0], row(others[0], OWN + PACKETS, THEIRS, PACKETS), "the QP whose packets are lost")
        a.reset()
        same(shown(m, 1), [], "QPs after a reset")


def test_shown_interrupts():
    """The property `interrupts` counts each message, and no event that sends none"""
    m = Machine(count=1)
    try:
        hca = m.hcas[0]
        hca.aim_at_memory(0)
        m.step()
        hca.message_seen(0)

        def interrupts():
            place = next(f"/machine/peripheral-anon/{child['name']}" for child in
                         m.qmp("qom-list", path="/machine/peripheral-anon") if child["type"] == "child<hghca>")
            return m.qmp("qom-get", path=place, property="interrupts")

        before = interrupts()
        for number in (1, 2, 3):
            hca.arm_eq(1)
            same(hca.message_seen(0), True, "the message of an EQ")
            same(interrupts() - before, number, "interrupts")
        m.step()
        same(interrupts() - before, 3, "interrupts when nothing has come")
    finally:
        m.close()
