# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames of a guest's HCAs in files, as the device itself captures them when it is told to over QMP."""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "wire"))
import frames  # noqa: E402

# A file of the tests gets no longer: property pcap-size.
MAX_BYTES = 32 << 20


def capture(guest, hca, file):
    """Have HCA `hca`, from 1, capture its frames in the file; "" for none."""
    guest.qmp("qom-set", path=f"/machine/peripheral/hca{hca}", property="pcap", value=str(file))


def captures_in(guest, hca):
    """The file that HCA `hca` captures its frames in, or "" when it captures none."""
    return guest.qmp("qom-get", path=f"/machine/peripheral/hca{hca}", property="pcap")


class Recorder:
    """Captures of some HCAs of a guest while a block runs; the files, {HCA: Path}, are gone with it.

    stop() ends them before that.
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


def judge(rig, run):
    """Run a test; what is wrong with the frames that its guests have sent, as lines.

    Each frame on their link passes by the first HCA of the first guest.
    """
    recorder = Recorder(rig.guest, (1,))
    with recorder as files:
        run(rig)
        recorder.stop()
        found = frames.decode(files[1])
    rig.note(f"{found.frames} frames, {found.rdma} of RoCE v2")
    return found.wrong[:20]
