# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls between the files of the verbs provider go one way: no chain of calls leads from a file back to that file.

What is called is read from the symbols of the objects. The layers are the lines of a list in hghca.h. The check proves
itself: each call is turned around in turn, and the circle that this makes must be noticed, and so must the call upward.
"""

import re

import graph
from hghca_lib import provider, repo

PROVIDER = "providers/hghca"
# A line of the list: files, and what is in them.
LAYER = re.compile(r"^ \*\t((?:\w+\.c(?:, )?)+)\t", re.MULTILINE)


def check(report, root):
    folder = provider.make(root) / provider.OBJECTS
    files = provider.sources()
    found = graph.symbols(root, folder, [f"{file}.o" for file in files])
    missed = sorted(set(files) ^ set(found))
    report.result(files and not missed, f"circles: the objects of all {len(files)} files of {PROVIDER} read",
                  f"not read: {missed}")
    bad = [line for circle in graph.circles(found) for line in graph.calls(found, circle)]
    report.result(not bad, f"circles: none in the calls between files of {PROVIDER}", "\n".join(bad))
    rank = layers(repo.path(PROVIDER) / "hghca.h")
    wrong = [f"{file}: not in both hghca.h and the folder" for file in sorted(rank.keys() ^ found.keys())]
    wrong = wrong or graph.upward(found, rank)
    report.result(not wrong, f"circles: files of {PROVIDER} call only lower layers, as hghca.h lists them",
                  "\n".join(wrong))
    turned, unnoticed = turn_around(found)
    report.result(turned > 30 and not unnoticed, f"circles: each of {turned} calls that is turned around is noticed",
                  "\n".join(unnoticed))
    report.run("circles: symbols are read as nm prints them, and calls named", check_reading)


def layers(header):
    """{file: its rank}, of the list in a header; the last line is rank 0."""
    lines = LAYER.findall(header.read_text())
    return {file: rank for rank, line in enumerate(reversed(lines)) for file in line.split(", ")}


def turn_around(found):
    """(number of calls between two files, those whose opposite is not noticed), of a graph without circles."""
    if graph.circles(found):
        return 0, ["there are circles already"]
    rank = graph.levels(found)
    pairs = [(file, other) for file in found for other in found[file]]
    unnoticed = [f"{file} → {other}" for file, other in pairs if not notices(found, rank, file, other)]
    return len(pairs), unnoticed


def notices(found, rank, file, other):
    """Whether a call of `other` to `file`, which calls it, is found as a circle and as a call upward."""
    spoilt = {**found, other: {**found[other], file: {"added"}}}
    added = f"{other} → {file}: added"
    circles = graph.circles(spoilt)
    return (len(circles) == 1 and {file, other} <= set(circles[0]) and added in graph.calls(spoilt, circles[0])
            and graph.upward(found, rank) == [] and graph.upward(spoilt, rank) == [added])


# Of two files: qp.c uses a function and a variable of cq.c, and one that no object has; cq.c has a static of its own.
DOWN = """\
qp.c.o:                 U free
qp.c.o:                 U hghca_cq_purge
qp.c.o:                 U hghca_cq_limit
qp.c.o:0000000000000010 T hghca_destroy_qp
qp.c.o:0000000000000000 t hghca_local
cq.c.o:0000000000000040 T hghca_cq_purge
cq.c.o:0000000000000000 R hghca_cq_limit
cq.c.o:0000000000000080 t hghca_local
"""
UP = "cq.c.o:                 U hghca_destroy_qp\n"
ALONE = "ah.o:0000000000000000 T hghca_create_ah\n"


def check_reading():
    down = {"qp.c": {"cq.c": {"hghca_cq_purge", "hghca_cq_limit"}}, "cq.c": {}, "ah.c": {}}
    assert graph.parse(DOWN + ALONE) == down, graph.parse(DOWN + ALONE)
    assert graph.circles(down) == [], graph.circles(down)
    both = graph.parse(DOWN + UP + ALONE)
    assert graph.circles(both) == [("cq.c", "qp.c")], graph.circles(both)
    lines = ["cq.c → qp.c: hghca_destroy_qp", "qp.c → cq.c: hghca_cq_limit, hghca_cq_purge"]
    assert graph.calls(both) == lines, graph.calls(both)
    assert graph.upward(both, {"ah.c": 0, "cq.c": 0, "qp.c": 1}) == lines[:1]
    # A circle of three files has each of them.
    three = {"a.c": {"b.c": {"b"}}, "b.c": {"c.c": {"c"}}, "c.c": {"a.c": {"a"}}, "d.c": {"a.c": {"a"}}}
    assert graph.circles(three) == [("a.c", "b.c", "c.c")], graph.circles(three)
