# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of `tools/hghca bench` as a picture, drawn by the build root's gnuplot."""

import shutil
import tempfile
from pathlib import Path

from .errors import ToolError

COLOURS = {"hghca": "#0060ad", "hghca-self": "#56b4e9", "rxe": "#d55e00", "memcpy": "#777777"}
POINTS = {"hghca": 7, "hghca-self": 6, "rxe": 5, "memcpy": 0}
HEAD = """
set terminal pngcairo size 1500,1000 font "DejaVu Sans,11" noenhanced
set output "/mnt/work/bench.png"
set multiplot layout 2,2 title "JingZhao HCA, rxe and memcpy: medians, bars from least to most" font "DejaVu Sans,14"
set style data linespoints
set grid ytics mytics lc rgb "#dddddd"
set key outside bottom center horizontal
set bars 0.6
"""
BANDWIDTH = """
set title "{test}"
set logscale x 2
set logscale y 10
set xrange [45:6291456]
set yrange [*:*]
set xlabel "message size"
set ylabel "MiB/s"
set xtics rotate by 0 ("64 B" 64, "256" 256, "1 KiB" 1024, "4" 4096, "16" 16384, "64" 65536, "256" 262144, "1 MiB" 1048576, "4" 4194304)
plot {curves}
"""
LATENCY = """
set title "latency, typical"
unset logscale x
set logscale y 10
set xrange [-0.6:{last}]
set xlabel ""
set ylabel "us"
set boxwidth 0.2
set key inside top left horizontal
set bmargin 4
set yrange [*:300]
set style fill solid 0.9 noborder
set xtics rotate by 0 ({tics})
plot {boxes}
"""


def draw(buildroot, results, target):
    """Draw the results of a bench into the PNG file `target`."""
    with tempfile.TemporaryDirectory(prefix="hghca-plot-") as name:
        folder = Path(name)
        script = HEAD + "".join(bandwidth(folder, results, test) for test in tests(results, "MiB/s"))
        (folder / "bench.gp").write_text(script + latency(folder, results))
        done = buildroot.output(["gnuplot", "/mnt/work/bench.gp"], {"work": folder})
        if done.returncode or not (folder / "bench.png").exists():
            raise ToolError(f"gnuplot could not draw: {done.stderr.strip()}")
        shutil.copyfile(folder / "bench.png", target)


def tests(results, unit):
    return list(dict.fromkeys(row["test"] for row in results if row["unit"] == unit))


def write(folder, name, lines):
    (folder / name).write_text("\n".join(lines) + "\n")
    return f'"/mnt/work/{name}"'


def bandwidth(folder, results, test):
    curves = []
    for subject, colour in COLOURS.items():
        rows = [row for row in results if row["test"] == test and row["subject"] == subject]
        data = write(folder, f"{test}-{subject}.dat",
                     [f"{row['bytes']} {row['value']} {row['min']} {row['max']}" for row in rows])
        curves.append(f'{data} using 1:2 title "{subject}" lw 2 pt {POINTS[subject]} lc rgb "{colour}", '
                      f'{data} using 1:2:3:4 with yerrorbars notitle pt 0 lc rgb "{colour}"')
    return BANDWIDTH.format(test=test, curves=", ".join(curves))


def latency(folder, results):
    places = list(dict.fromkeys((row["test"], row["bytes"]) for row in results if row["unit"] == "us"))
    tics = ", ".join(f'"{test}\\n{size} B" {number}' for number, (test, size) in enumerate(places))
    boxes = []
    for index, subject in enumerate(subject for subject in COLOURS if subject != "memcpy"):
        rows = {(row["test"], row["bytes"]): row for row in results if row["unit"] == "us" and row["subject"] == subject}
        lines = [f"{number + (index - 1) * 0.22} {rows[place]['value']} {rows[place]['min']} {rows[place]['max']}"
                 for number, place in enumerate(places)]
        data = write(folder, f"latency-{subject}.dat", lines)
        boxes.append(f'{data} using 1:2 with boxes title "{subject}" lc rgb "{COLOURS[subject]}", '
                     f'{data} using 1:2:3:4 with yerrorbars notitle pt 0 lc rgb "#333333"')
    return LATENCY.format(last=len(places) - 0.4, tics=tics, boxes=", ".join(boxes))
