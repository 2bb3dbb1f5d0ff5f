# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress lines on stderr: one for each step, with the elapsed time, updated on a terminal."""

import contextlib
import sys
import threading
import time


class Progress:
    """Prints the steps of a setup as `[3/7] name ... 151 s`.

    total: the number of steps.
    verbose: also print the steps whose results exist already.
    """

    def __init__(self, total, verbose=True, stream=None):
        self.total = total
        self.verbose = verbose
        self.number = 0
        self.stream = stream or sys.stderr

    @contextlib.contextmanager
    def step(self, name, cached):
        """Wrap a step's work; `cached`: its result exists already."""
        self.number += 1
        label = f"[{self.number}/{self.total}] {name}"
        if cached:
            yield
            if self.verbose:
                self._write(f"{label} ... there\n")
            return
        start = time.monotonic()
        with self._counter(label, start):
            yield
        self._write(f"{self._rewind()}{label} ... {time.monotonic() - start:.0f} s\n")

    def _write(self, text):
        self.stream.write(text)
        self.stream.flush()

    def _rewind(self):
        return "\r\033[K" if self.stream.isatty() else ""

    @contextlib.contextmanager
    def _counter(self, label, start):
        """Show the elapsed seconds on a terminal; elsewhere only print the start of the step."""
        stop = threading.Event()

        def count():
            while not stop.wait(1.0):
                self._write(f"\r{label} ... {time.monotonic() - start:.0f} s")

        if not self.stream.isatty():
            self._write(f"{label} ...\n")
            yield
            return
        self._write(f"{label} ...")
        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            stop.set()
            thread.join()
            self._write("\n")
            raise
        stop.set()
        thread.join()
