# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames of a guest's HCAs in files: the device captures them, controlled over QMP."""

import concurrent.futures
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from hghca_lib.errors import ToolError
from hghca_lib.guest import GuestError

sys.path.append(str(Path(__file__).resolve().parents[2] / "wire"))
import frames  # noqa: E402
import pcapng  # noqa: E402
from pcapng import IN, OUT  # noqa: E402

# The limit of the files of an HCA without a journal: property pcap-size.
SMALL_BYTES = 32 << 20
# The amount to gather before a check, which takes a second and 50 us a frame.
GATHERED_BYTES = 256 << 20
# A frame of the largest MTU, with what the file has around it.
LARGEST_BLOCK_BYTES = 10_000
# How many errors of a file are shown.
SHOWN = 5
# Which frames of a test are checked, from the view of the first HCA of the first guest.
EVERY, SENT, RECEIVED, NONE = (IN, OUT), (OUT,), (IN,), ()


def capture(guest, hca, file):
    """Have HCA `hca`, from 1, capture its frames in the file; "" for none."""
    guest.qmp("qom-set", path=f"/machine/peripheral/hca{hca}", property="pcap", value=str(file))


def captures_in(guest, hca):
    """The file that HCA `hca` captures its frames in, or "" when it captures none."""
    return guest.qmp("qom-get", path=f"/machine/peripheral/hca{hca}", property="pcap")


class Recorder:
    """Captures of some HCAs of a guest during a block; the files, {HCA: Path}, are deleted at its end.

    stop() ends the captures before that.
    """

    def __init__(self, guest, hcas):
        self.guest = guest
        self.hcas = hcas
        self.folder = None

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hghca-capture-"))
        files = {hca: self.folder / f"hca{hca}.pcapng" for hca in self.hcas}
        for hca, file in files.items():
            capture(self.guest, hca, file)
        return files

    def stop(self):
        for hca in self.hcas:
            capture(self.guest, hca, "")

    def __exit__(self, *_):
        try:
            if self.guest.alive():
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class Journal:
    """The frames on a machine's link, from its guests' start to their end.

    The first HCA of the first guest captures them; each of the machine's frames passes it. Each test has a file, which
    also holds the frames after the test. The files are checked when enough has been gathered, while the tests go on.

    wrong: the errors so far, as lines.
    cut:   lines on the files that are checked only in part.
    """

    def __init__(self, max_bytes, repeated_bytes):
        """max_bytes: the limit of a file. repeated_bytes: the limit of the check for a test without cases."""
        self.max_bytes = max_bytes
        self.repeated_bytes = repeated_bytes
        self.checked_bytes = max_bytes
        self.cut = []
        # A test may have ten GB, and /tmp may be in memory.
        self.folder = Path(tempfile.mkdtemp(prefix="hghca-journal-", dir="/var/tmp"))
        self.guest = None
        self.count = 0
        self.file = self.next_file("start")
        self.ways = EVERY
        self.waiting = []
        self.wrong = []
        self.totals = frames.Findings()
        self.checker = concurrent.futures.ThreadPoolExecutor(1)
        self.check = None   # under way: a Future of Check

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.checker.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def options(self):
        """The properties with which the capturing HCA is started."""
        return f"pcap-size={self.max_bytes},pcap={self.file}"

    def next_file(self, name):
        self.count += 1
        return self.folder / f"{self.count:03} {re.sub('[^A-Za-z0-9=-]+', ' ', name)[:80]}.pcapng"

    def begin(self, entry):
        """Start the file of a test; no file if the test captures itself."""
        self.turn(None if entry.captures else self.next_file(entry.name), entry.checked)
        self.checked_bytes = self.max_bytes

    def end(self, entry, cases):
        """End a test with this number of cases. Later frames get another file if some of its frames are unchecked."""
        if not cases:
            self.checked_bytes = self.repeated_bytes
        if not self.guest.alive():
            self.close()
        elif entry.captures or entry.checked != EVERY:
            self.turn(self.next_file(f"after {entry.name}"), EVERY)

    def turn(self, file, ways):
        """Close the current file and continue in another one."""
        if self.file and captures_in(self.guest, 1) != str(self.file):
            if self.file.stat().st_size + LARGEST_BLOCK_BYTES > self.max_bytes:
                if self.checked_bytes == self.max_bytes:
                    self.tell_cut(self.max_bytes)
            else:
                self.wrong.append(f"{self.file.stem}: the capture has ended by itself")
        capture(self.guest, 1, file or "")
        self.close()
        self.file, self.ways = file, ways

    def close(self):
        if self.file and self.file.exists():
            if pcapng.cut(self.file, self.checked_bytes):
                self.tell_cut(self.checked_bytes)
            if self.ways != EVERY:
                pcapng.keep(self.file, self.ways)
            self.waiting.append(self.file)
        self.file = None

    def keep(self, target):
        """Copy the frames of the last test to a file, unless it captured itself; they are still checked."""
        if self.file:
            self.turn(self.next_file(f"after {self.file.stem[4:]}"), EVERY)
        if self.waiting:
            shutil.copy(self.waiting[-1], target)

    def tell_cut(self, size):
        self.cut.append(f"of {self.file.stem} the first {size >> 20} MiB alone")

    def keep_up(self):
        """Check the gathered files if there are enough, beside the tests; a line on the check before, or ""."""
        if sum(file.stat().st_size for file in self.waiting) < GATHERED_BYTES:
            return ""
        said = self.book()
        self.check, self.waiting = self.checker.submit(Check, self.waiting), []
        return said

    def book(self):
        """Wait for the check under way and take its findings; a line on it, or "" if there was none."""
        if not self.check:
            return ""
        check, self.check = self.check.result(), None
        self.wrong += check.wrong
        self.totals.add(check.findings)
        return f"{check.seconds:.1f} s for the checkers of {check.findings.frames} frames in {check.size >> 20} MiB"

    def shown(self):
        """The errors, as text: the first ones of each file."""
        files = {}
        for line in self.wrong:
            files.setdefault(line.partition(": ")[0], []).append(line)
        lines = []
        for name, found in files.items():
            lines += found[:SHOWN]
            lines += [f"{name}: and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        return "\n".join(lines)

    def finish(self):
        """Check the remaining files, with or without a running guest; lines on the amount."""
        try:
            if self.guest.alive():
                self.turn(None, EVERY)
        except GuestError as error:
            self.wrong.append(str(error))
        self.close()
        self.book()
        self.check, self.waiting = self.checker.submit(Check, self.waiting), []
        self.book()
        lines = [f"{self.totals.frames} frames, {self.totals.rdma} of RoCE v2, {self.totals.scapy} of them seen by "
                 f"scapy too; {len(self.wrong)} findings"]
        return lines + self.cut


class Check:
    """A check of some files of one folder, which are deleted; `size`: their bytes."""

    def __init__(self, files):
        start = time.monotonic()
        self.size = sum(file.stat().st_size for file in files)
        self.findings, self.wrong = frames.Findings(), []
        try:
            if files:
                self.findings = frames.decode(*files, apart=True)
                self.wrong = self.findings.wrong
        except ToolError as error:
            self.wrong = [f"{files[0].stem} to {files[-1].stem}: {error}"]
        for file in files:
            file.unlink()
        self.seconds = time.monotonic() - start
