# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with objects of every kind, which does what it is told on its standard input.

usage: observe.py DEVICE GID-INDEX

Each line of input is a JSON object; `do` says what, see Program. Each is
answered by a line of JSON. The first line, without being asked, tells what
the program has made. It ends with its input.
"""

import json
import os
import sys

from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE
import pyverbs.enums as e

RW = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
TYPES = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}
CQES, MR_BYTES = (100, 300), (5000, 3 << 20)
PSN = {"sq": 0x123, "rq": 0x123}
QKEY = 0x11111111


class Program:
    """Its methods do_* are what can be asked for."""

    def __init__(self, device, gid_index):
        self.gid_index = gid_index
        self.context = Context(name=device)
        self.gid = self.context.query_gid(1, gid_index).gid
        self.pd = PD(self.context)
        self.cqs = [CQ(self.context, cqes) for cqes in CQES]
        self.mrs = [MR(self.pd, length, RW) for length in MR_BYTES]
        self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=50)))
        self.qps = {}
        for kind in ("RC", "RC", "UC", "UD"):
            self.make(kind)
        self.shared = self.make("RC", self.srq)

    def tell(self):
        return {"pid": os.getpid(), "gid": self.gid,
                "cqes": [cq.cqe for cq in self.cqs],
                "mrs": [{"lkey": mr.lkey, "rkey": mr.rkey, "length": length, "address": mr.buf}
                        for mr, length in zip(self.mrs, MR_BYTES)],
                "access": RW, "shared": self.shared,
                "qps": [{"qpn": qpn, "type": kind} for qpn, (qp, kind) in self.qps.items()]}

    def make(self, kind, srq=None):
        """A QP in INIT, a UD one in RTS; its number."""
        init = QPInitAttr(qp_type=TYPES[kind], scq=self.cqs[0], rcq=self.cqs[1], srq=srq,
                          cap=QPCap(max_send_wr=16, max_recv_wr=0 if srq else 64))
        qp = QP(self.pd, init)
        attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
        mask = e.IBV_QP_STATE | e.IBV_QP_PORT | e.IBV_QP_PKEY_INDEX
        if kind == "UD":
            attr.qkey = QKEY
            qp.modify(attr, mask | e.IBV_QP_QKEY)
        else:
            attr.qp_access_flags = RW & ~e.IBV_ACCESS_LOCAL_WRITE
            qp.modify(attr, mask | e.IBV_QP_ACCESS_FLAGS)
        self.qps[qp.qp_num] = (qp, kind)
        return qp.qp_num

    def do_make(self, kind, count=1):
        """So many further QPs in INIT."""
        return {"qpns": [self.make(kind) for _ in range(count)]}

    def do_reset(self, qpn):
        self.qps[qpn][0].modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
        return {}

    def do_init(self, qpn):
        """From RESET to INIT."""
        qp, _ = self.qps[qpn]
        attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
        attr.qp_access_flags = RW & ~e.IBV_ACCESS_LOCAL_WRITE
        qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_PORT | e.IBV_QP_PKEY_INDEX | e.IBV_QP_ACCESS_FLAGS)
        return {}

    def do_destroy(self, qpns):
        for qpn in qpns:
            self.qps.pop(qpn)[0].close()
        return {}

    def do_connect(self, qpn, peer, gid):
        """An RC QP from INIT to RTS. It never loses patience: nothing is sent twice on a slow machine."""
        qp, _ = self.qps[qpn]
        attr = QPAttr(qp_state=e.IBV_QPS_RTR)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer
        attr.rq_psn = PSN["rq"]
        attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.ah_attr = AHAttr(is_global=1, port_num=1,
                              gr=GlobalRoute(dgid=GID(gid), sgid_index=self.gid_index, hop_limit=64))
        qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_RQ_PSN |
                  e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)
        attr = QPAttr(qp_state=e.IBV_QPS_RTS)
        attr.sq_psn = PSN["sq"]
        attr.timeout = 0
        attr.retry_cnt = 7
        attr.rnr_retry = 7
        attr.max_rd_atomic = 4
        qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_SQ_PSN | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT |
                  e.IBV_QP_RNR_RETRY | e.IBV_QP_MAX_QP_RD_ATOMIC)
        return {}

    def do_receive(self, qpn, count):
        mr = self.mrs[0]
        for _ in range(count):
            self.qps[qpn][0].post_recv(RecvWR(sg=[SGE(mr.buf, 4096, mr.lkey)], num_sge=1))
        return {}

    def do_send(self, qpn, count, size):
        """So many messages, each when the one before has completed."""
        mr = self.mrs[0]
        for _ in range(count):
            self.qps[qpn][0].post_send(SendWR(sg=[SGE(mr.buf, size, mr.lkey)], num_sge=1))
            self.completion(self.cqs[0])
        return {}

    def do_write(self, qpn, size, address, rkey):
        mr = self.mrs[0]
        wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, sg=[SGE(mr.buf, size, mr.lkey)], num_sge=1)
        wr.set_wr_rdma(rkey, address)
        self.qps[qpn][0].post_send(wr)
        self.completion(self.cqs[0])
        return {}

    def do_received(self, count):
        """Polls so many receives."""
        for _ in range(count):
            self.completion(self.cqs[1])
        return {}

    def completion(self, cq):
        while True:
            number, completions = cq.poll()
            if number:
                if completions[0].status:
                    raise RuntimeError(f"completion in error: {completions[0].status}")
                return


def main():
    program = Program(sys.argv[1], int(sys.argv[2]))
    print(json.dumps(program.tell()), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = getattr(program, f"do_{asked.pop('do')}")(**asked)
        print(json.dumps(answer), flush=True)


main()
