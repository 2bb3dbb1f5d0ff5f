# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of `tools/hghca bench` as a picture, drawn by the build root's gnuplot."""

import math
import shutil
import tempfile
from pathlib import Path

from .errors import ToolError

COLOURS = {"hghca": "#0060ad", "hghca-unverified": "#cc79a7", "hghca-self": "#56b4e9", "hghca-vms": "#e69f00",
           "rxe": "#d55e00", "loop": "#009e73", "memcpy": "#777777", "copy-crc": "#222222"}
POINTS = {"hghca": 7, "hghca-unverified": 9, "hghca-self": 6, "hghca-vms": 13, "rxe": 5, "loop": 4, "memcpy": 0, "copy-crc": 1}
PANEL_WIDTH, PANEL_HEIGHT = 750, 500
COPIES = ("memcpy", "copy-crc")
BOX_DISTANCE = 0.22
TITLE = "JingZhao HCA, rxe and copies of memory: medians, bars from least to most"
HEAD = """
set terminal pngcairo size {width},{height} font "DejaVu Sans,11" noenhanced
set output "/mnt/work/bench.png"
set multiplot layout {rows},{columns} title "{title}" font "DejaVu Sans,14"
set grid ytics mytics lc rgb "#dddddd"
set bars 0.6
set logscale y 10
"""
# Figures with many sizes of messages or regions.
LINES = """
set title "{test}"
set style data linespoints
set logscale x 2
set xrange [{least}:{most}]
set yrange [*:*]
set xlabel ""
set ylabel "{unit}"
set key outside bottom center horizontal
set xtics rotate by 0 ({tics})
plot {curves}
"""
# Figures with one size or two.
BOXES = """
set title "{title}"
unset logscale x
set xrange [-0.6:{last}]
set xlabel ""
set ylabel "{unit}"
set boxwidth 0.2
set key inside top left horizontal
set bmargin 4
set yrange [*:{top}]
set style fill solid 0.9 noborder
set xtics rotate by 0 ({tics})
plot {boxes}
"""


def draw(buildroot, results, target):
    """Draw the results of a bench into the PNG file `target`."""
    with tempfile.TemporaryDirectory(prefix="hghca-plot-") as name:
        folder = Path(name)
        drawn = panels(folder, results)
        columns = min(len(drawn), 2 if len(drawn) <= 4 else 3)
        rows = math.ceil(len(drawn) / columns)
        head = HEAD.format(title=TITLE, rows=rows, columns=columns, width=columns * PANEL_WIDTH,
                           height=rows * PANEL_HEIGHT)
        (folder / "bench.gp").write_text(head + "".join(drawn))
        done = buildroot.output(["gnuplot", "/mnt/work/bench.gp"], {"work": folder})
        if done.returncode or not (folder / "bench.png").exists():
            raise ToolError(f"gnuplot could not draw: {done.stderr.strip()}")
        shutil.copyfile(folder / "bench.png", target)


def panels(folder, results):
    """gnuplot's text for each panel: curves for figures with many sizes, boxes for the others."""
    tests = list(dict.fromkeys(row["test"] for row in results))
    by_test = {test: [row for row in results if row["test"] == test] for test in tests}
    curves = [test for test in tests if len({row["bytes"] for row in by_test[test]}) > 2]
    rest = [row for row in results if row["test"] not in curves]
    drawn = [lines(folder, test, by_test[test]) for test in curves]
    for title, chosen in (("latency", [row for row in rest if row["unit"] == "us"]),
                          ("rates", [row for row in rest if row["unit"] != "us"])):
        if chosen:
            drawn.append(boxes(folder, title, chosen))
    return drawn


def write(folder, name, rows):
    (folder / name).write_text("\n".join(rows) + "\n")
    return f'"/mnt/work/{name}"'


def size_name(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def lines(folder, test, rows):
    sizes = sorted({row["bytes"] for row in rows})
    curves = []
    for subject, colour in COLOURS.items():
        own = [row for row in rows if row["subject"] == subject]
        if own:
            data = write(folder, f"{test}-{subject}.dat",
                         [f"{row['bytes']} {row['value']} {row['min']} {row['max']}" for row in own])
            curves.append(f'{data} using 1:2 title "{subject}" lw 2 pt {POINTS[subject]} lc rgb "{colour}", '
                          f'{data} using 1:2:3:4 with yerrorbars notitle pt 0 lc rgb "{colour}"')
    return LINES.format(test=test, unit=rows[0]["unit"], least=sizes[0] * 0.7, most=sizes[-1] * 1.5,
                        tics=", ".join(f'"{size_name(size)}" {size}' for size in sizes), curves=", ".join(curves))


def beside(present, subject):
    """How far the box of the subject is from the middle of those at the same place."""
    return (present.index(subject) - (len(present) - 1) / 2) * BOX_DISTANCE


def boxes(folder, title, rows):
    places = list(dict.fromkeys((row["test"], row["bytes"]) for row in rows))
    units = list(dict.fromkeys(row["unit"] for row in rows))
    at = {(row["test"], row["bytes"], row["subject"]): row for row in rows}
    present = {place: [subject for subject in COLOURS if subject not in COPIES and (*place, subject) in at]
               for place in places}
    drawn = []
    for subject in COLOURS:
        own = [(number + beside(present[place], subject), at[*place, subject])
               for number, place in enumerate(places) if subject in present[place]]
        if own:
            data = write(folder, f"{title}-{subject}.dat",
                         [f"{x} {row['value']} {row['min']} {row['max']}" for x, row in own])
            drawn.append(f'{data} using 1:2 with boxes title "{subject}" lc rgb "{COLOURS[subject]}", '
                         f'{data} using 1:2:3:4 with yerrorbars notitle pt 0 lc rgb "#333333"')
    tics = ", ".join(f'"{test}\\n{size_name(size) if size else ""}" {number}'
                     for number, (test, size) in enumerate(places))
    # Space above for the key.
    top = 10 ** math.ceil(math.log10(max(row["max"] for row in rows)) + 0.7)
    return BOXES.format(title=title, unit=", ".join(units), last=len(places) - 0.4, top=top, tics=tics,
                        boxes=", ".join(drawn))
