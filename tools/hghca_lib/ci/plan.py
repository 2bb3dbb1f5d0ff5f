# SPDX-License-Identifier: GPL-2.0-or-later
"""The plans of `tools/hghca ci`: which tests run under the kernel of a tree, on which RDMA device, and for how long."""

import dataclasses

from ..errors import UsageError

HGHCA, RXE, SIW = SUBJECTS = ("hghca", "rxe", "siw")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which tests of tests/guest run.

    parts:   of the names of the tests; without, those that each part of the driver needs (framework.Test.lines).
    without: parts of the names of tests that are left out.
    again:   the plan starts again until the time of --minutes is over.
    bench:   figures of `tools/hghca bench`, measured in place of tests.
    """
    name: str
    text: str
    parts: tuple = ()
    without: tuple = ()
    again: bool = False
    bench: tuple = ()

    def arguments(self, subject):
        """Those of tests/guest/run."""
        chosen = ["--tier", "all", *self.parts] if self.parts else ["--tier", "gate"]
        # A software device is both ends.
        without = self.without if subject == HGHCA else ()
        return ["--subject", subject, *chosen, *(word for part in without for word in ("--without", part))]


SAME_AGAIN = ("the other way", "an HCA to itself")
PLANS = {plan.name: plan for plan in (
    Plan("smoke", "each transport service, the CM, on-demand paging, NVMe over Fabrics with a file system, unloading: "
                  "2 minutes"),
    Plan("verbs", "rdma-core's own tests, and ours of data and of the CM", ("verbs suite:", "data:", "rdmacm: rping")),
    Plan("ulps", "NVMe over Fabrics with multipath, iSER, SRP, NFS, RDS, SMC, RNBD, SMB Direct, all with data compared",
         ("kernel users:",), SAME_AGAIN),
    Plan("perf", "bandwidth and latency beside rxe and memcpy, in one run",
         bench=("ib_write_bw:65536", "ib_read_bw:65536", "ib_send_bw:65536", "ib_write_lat:8", "ib_send_lat:8")),
    Plan("soak", "the tests of smoke and of ulps again and again",
         ("pingpong: rc", "rdmacm: rping", "kernel users:"), SAME_AGAIN, again=True),
)}


def find(name):
    if name not in PLANS:
        raise UsageError(f"there is no plan {name}", f"give --plan {', '.join(PLANS)}")
    return PLANS[name]
