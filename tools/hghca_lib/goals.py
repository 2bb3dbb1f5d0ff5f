# SPDX-License-Identifier: GPL-2.0-or-later
"""What the figures of `tools/hghca bench` shall reach, beside what they do.

A goal is of one figure at one size. Its wish is a number, or the less of a number and a share of the limit copy-crc, in
the unit of the figure, or a multiple of rxe's figure.
"""

import dataclasses

from .figures import VMS

GB_IN_MIB = 1e9 / (1 << 20)
KIB, MIB = 1 << 10, 1 << 20
LIMIT, RXE = "copy-crc", "rxe"
SUBJECTS = ("hghca", "hghca-self")


@dataclasses.dataclass(frozen=True)
class Goal:
    """The figure `test` at `bytes`.

    gigabytes, share: a bandwidth of so many GB/s, or that share of the limit, whichever is less.
    microseconds:     a latency, at most.
    of_rxe:           so many times rxe's.
    percent, times:   a deviation or a ratio, at most.
    subject:          whose; without, the first of SUBJECTS that is measured.
    """
    test: str
    bytes: int
    gigabytes: float = 0
    share: float = 0
    microseconds: float = 0
    of_rxe: float = 0
    percent: float = 0
    times: float = 0
    subject: str = ""

    def subjects(self):
        return (self.subject,) if self.subject else SUBJECTS

    def name(self):
        return f"{self.test} of {self.subject}" if self.subject else self.test

    def judge(self, value):
        """(found, wanted, unit, reached), or None if the run lacks a figure. value: (test, bytes, subject) -> row."""
        ours = next((value[self.test, self.bytes, subject]["value"] for subject in self.subjects()
                     if (self.test, self.bytes, subject) in value), None)
        beside = value.get((self.test, self.bytes, RXE if self.of_rxe else LIMIT))
        most, unit = next(((most, unit) for most, unit in ((self.microseconds, "us"), (self.percent, "%"),
                                                           (self.times, "times")) if most), (0, ""))
        if ours is None or (beside is None and not most):
            return None
        if most:
            return ours, most, unit, ours <= most
        if self.of_rxe:
            found = ours / beside["value"]
            return found, self.of_rxe, "of rxe", found >= self.of_rxe
        found, wanted = ours / GB_IN_MIB, min(self.gigabytes, self.share * beside["value"] / GB_IN_MIB)
        return found, wanted, "GB/s", found >= wanted


GOALS = [
    *(Goal(test, size, gigabytes=gigabytes, share=share) for size, gigabytes, share in
      ((MIB, 12.5, 0.6), (64 * KIB, 8, 0.4), (4 * KIB, 2, 0.1)) for test in ("ib_write_bw", "ib_read_bw", "ib_send_bw")),
    Goal("ib_write_bw", MIB, gigabytes=6.1, share=0.4, subject=VMS),
    Goal("ib_write_lat", 8, microseconds=3),
    Goal("event-latency", 8, microseconds=15, subject=VMS),
    *(Goal("registrations", 4 * KIB << shift, of_rxe=1) for shift in range(0, 15, 2)),
    Goal("queue-pairs", 0, of_rxe=1),
    Goal("fairness", 0, percent=5),
    Goal("latency-under-load", 8, times=10),
    Goal("connections", 0, of_rxe=1),
    Goal("nvme-iops", 4 * KIB, of_rxe=3),
    Goal("nvme-bandwidth", 256 * KIB, of_rxe=10),
]


def lines(results):
    """A line for each goal whose figures the run has."""
    value = {(row["test"], row["bytes"], row["subject"]): row for row in results}
    judged = [(goal, goal.judge(value)) for goal in GOALS]
    return [f"{goal.name():<28}{goal.bytes or '-':>9}{found:>10.3g} {unit:<8}goal {wanted:.3g}: {'reached' if reached else 'MISSED'}"
            for goal, judgement in judged if judgement for found, wanted, unit, reached in [judgement]]
