# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench core`: the program runs, and its table says what share of the limit a figure is."""

import contextlib
import io

from tool import same

from hghca_lib import bench_core


def test_core_benchmark():
    """Each figure of the core's benchmark ends well, the QPs in turn with all contexts cached and with some"""
    rows = bench_core.Program().run("^(write|read|send)/(64|4096)$|^write_in_turn/(100/0|1000/900)$|^copy_crc/(64|4096)$",
                                    shortest_s=0.001)
    same(sorted(rows), sorted(["copy_crc/4096", "copy_crc/64", "read/4096", "read/64", "send/4096", "send/64",
                               "write/4096", "write/64", "write_in_turn/100/0", "write_in_turn/1000/900"]), "figures")
    same([name for name, found in rows.items() if len(found) != 1 or found[0]["items_per_second"] <= 0], [],
         "figures without a rate")


def test_core_table():
    """A figure has its share of the limit at its own size"""
    rates = {"write/4096": [2e6, 4e6, 3e6], "copy_crc/4096": [6e6], "copy_crc/64": [1e6], "write_in_turn/100/0": [1e6]}
    results = [bench_core.result(name, [{"items_per_second": rate, "bytes_per_second": rate * 4096} for rate in values])
               for name, values in rates.items()]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        bench_core.print_table(results)
    lines = {line.split()[0]: line.split()[1:] for line in said.getvalue().splitlines()[2:]}
    same(lines, {"write/4096": ["3000", "(2000", "to", "4000)", "12.29", "50%"],
                 "copy_crc/4096": ["6000", "(6000", "to", "6000)", "24.58"],
                 "copy_crc/64": ["1000", "(1000", "to", "1000)", "4.10"],
                 "write_in_turn/100/0": ["1000", "(1000", "to", "1000)", "4.10"]}, "rows")
