# SPDX-License-Identifier: GPL-2.0-or-later
"""What a checker has found nothing in, kept in the cache: the same input is not read again.

The key of an input is a hash of all that decides the verdict: the checker, which is the build root's, its options, the
file, and what the file includes. Only inputs without any finding are kept, not even an excepted one.
"""

import time

from hghca_lib import cache

UNUSED_S = 30 * 24 * 3600


class Verdicts:
    """The inputs of one checker: keys is {name: its key}."""

    def __init__(self, checker, keys):
        self.folder = cache.root() / "verdicts" / checker
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keys = keys
        self.known = {name for name, key in keys.items() if (self.folder / key).exists()}

    def unknown(self):
        """The inputs that are to be read, sorted."""
        return sorted(self.keys.keys() - self.known)

    def keep(self, clean):
        """Keep the verdicts of the inputs in `clean`, and forget those that no run has used for long."""
        for name in self.known | set(clean):
            (self.folder / self.keys[name]).touch()
        for verdict in self.folder.iterdir():
            if time.time() - verdict.stat().st_mtime > UNUSED_S:
                verdict.unlink(missing_ok=True)

    def note(self, report):
        """How many inputs were not read in this run."""
        if self.known:
            report.note(f"{len(self.known)} of {len(self.keys)} are as they were when nothing was found in them")
