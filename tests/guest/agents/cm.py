# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections of the connection manager, and what each end is told of the other; prints TAP.

usage: cm.py serve|connect ADDRESS PORT

The server rejects the first connection; the client disconnects the second, and the server the third. Requests,
rejections and acceptances come with private data, and a receive that is posted is flushed in the end.
"""

import sys

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import AddrInfo, CMEvent, CMEventChannel, CMID, ConnParam
from pyverbs.qp import QPCap, QPInitAttr

RESOLVE_MS = 5000
BYTES = 64
WORDS = {"request": b"may I?", "reject": b"not today", "accept": b"come in"}
# Who disconnects each connection; the one of nobody is rejected.
ENDERS = (None, "connect", "serve")


class End:
    """One end of a connection; `role` is serve or connect."""

    def __init__(self, role, channel):
        self.role = role
        self.channel = channel
        self.wrong = []

    def await_event(self, wanted, words=None):
        """The next event, which must be this one, with this private data; the caller acknowledges it."""
        event = CMEvent(self.channel)
        if event.event_type != wanted:
            self.wrong.append(f"{event.event_str()} instead of event {wanted}")
        elif words and bytes(event.private_data[:len(words)]) != words:
            self.wrong.append(f"{event.event_str()} with other words: {bytes(event.private_data)!r}")
        return event

    def take(self, wanted, words=None):
        self.await_event(wanted, words).ack_cm_event()

    @staticmethod
    def parameters(words):
        parameters = ConnParam(data_len=len(words))
        parameters.set_private_data(words)
        return parameters

    def finish(self, cmid, enders_role):
        """Take the connection down, or see it taken down."""
        region = cmid.reg_msgs(BYTES)
        cmid.post_recv(region)
        if enders_role == self.role:
            cmid.disconnect()
        self.take(ce.RDMA_CM_EVENT_DISCONNECTED)
        if enders_role != self.role:
            cmid.disconnect()
        completion = cmid.get_recv_comp()
        if completion.status != e.IBV_WC_WR_FLUSH_ERR:
            self.wrong.append(f"the receive ended with status {completion.status}")
        region.close()


def make_qp(cmid):
    cmid.create_qp(QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_recv_wr=1, max_send_wr=1)))


def answer(end, listener, ender):
    event = end.await_event(ce.RDMA_CM_EVENT_CONNECT_REQUEST, WORDS["request"])
    cmid = CMID(creator=event, listen_id=listener)
    event.ack_cm_event()
    make_qp(cmid)
    if ender is None:
        cmid.reject(WORDS["reject"])
    else:
        cmid.accept(end.parameters(WORDS["accept"]))
        end.take(ce.RDMA_CM_EVENT_ESTABLISHED)
        end.finish(cmid, ender)
    cmid.close()


def ask(end, address, port, ender):
    cmid = CMID(creator=end.channel, port_space=ce.RDMA_PS_TCP)
    info = AddrInfo(dst=address, dst_service=port, port_space=ce.RDMA_PS_TCP)
    cmid.resolve_addr(info, RESOLVE_MS)
    end.take(ce.RDMA_CM_EVENT_ADDR_RESOLVED)
    cmid.resolve_route(RESOLVE_MS)
    end.take(ce.RDMA_CM_EVENT_ROUTE_RESOLVED)
    make_qp(cmid)
    cmid.connect(end.parameters(WORDS["request"]))
    if ender is None:
        end.take(ce.RDMA_CM_EVENT_REJECTED, WORDS["reject"])
    else:
        end.take(ce.RDMA_CM_EVENT_ESTABLISHED, WORDS["accept"])
        end.finish(cmid, ender)
    cmid.close()


def main(role, address, port):
    channel = CMEventChannel()
    end = End(role, channel)
    listener = None
    if role == "serve":
        listener = CMID(creator=channel, port_space=ce.RDMA_PS_TCP)
        listener.bind_addr(AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE))
        listener.listen()
    failed = 0
    for number, ender in enumerate(ENDERS, 1):
        end.wrong = []
        if role == "serve":
            answer(end, listener, ender)
        else:
            ask(end, address, port, ender)
        failed += bool(end.wrong)
        what = f"disconnected by who called {ender}" if ender else "rejected"
        print(f"{'not ' if end.wrong else ''}ok {number} - {what}{': ' if end.wrong else ''}{', '.join(end.wrong)}")
    print(f"1..{len(ENDERS)}")
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
