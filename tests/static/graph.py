# SPDX-License-Identifier: GPL-2.0-or-later
"""Which file of a program calls which, as the symbols of its objects tell.

A graph is {file: {file that it calls: names that it uses there}}, with an entry for every object that was read. A name
is a function or a variable that one object defines and another uses. Functions that a header defines belong to the
file that includes it, so they are no calls.
"""

import re

# A line of `nm -A`: OBJECT:ADDRESS TYPE NAME; what is undefined has no address. A file is named by its object's path.
SYMBOL = re.compile(r"^([^:]+)\.o:\s*[0-9a-f]*\s+([A-Za-z]) (\S+)$", re.MULTILINE)
UNDEFINED = {"U", "v", "w"}


def symbols(root, folder, objects):
    """The graph of objects, given by their paths below a folder; `nm` is that of the build root."""
    done = root.output(["nm", "-A", *objects], {"objects": folder}, "/mnt/objects")
    return parse(done.stdout)


def parse(text):
    """The graph of the objects whose symbols `nm -A` has printed."""
    found = [(source(name), kind, symbol) for name, kind, symbol in SYMBOL.findall(text)]
    defined = {symbol: file for file, kind, symbol in found if kind.isupper() and kind not in UNDEFINED}
    graph = {file: {} for file, _, _ in found}
    for file, kind, symbol in found:
        other = defined.get(symbol)
        if kind in UNDEFINED and other and other != file:
            graph[file].setdefault(other, set()).add(symbol)
    return graph


def source(name):
    """The file that an object is made of: of cq.c for cq.o, and for CMake's cq.c.o."""
    return name if name.endswith((".c", ".cc")) else f"{name}.c"


def calls(graph, files=None):
    """Each call as a line, of the whole graph or between some files of it."""
    return [f"{file} → {other}: {', '.join(sorted(graph[file][other]))}" for file in sorted(graph)
            for other in sorted(graph[file]) if files is None or file in files and other in files]


def circles(graph):
    """The sets of files, each sorted, in which every file reaches every other one by calls; none in layers."""
    reach = {file: _reached(graph, file) for file in graph}
    mutual = {tuple(sorted({file} | {other for other in reach[file] if file in reach[other]})) for file in graph}
    return sorted(group for group in mutual if len(group) > 1)


def _reached(graph, start):
    """The files that calls from a file lead to."""
    reached, waiting = set(), [start]
    while waiting:
        for other in graph[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def upward(graph, rank):
    """The calls of a file to one of a higher rank, as lines; rank is {file: number}, 0 for the lowest layer."""
    return calls({file: {other: names for other, names in others.items() if rank[other] > rank[file]}
                  for file, others in graph.items()})


def levels(graph):
    """{file: the number of calls in the longest chain below it}, for a graph without circles: a rank that suits it."""
    known = {}

    def level(file):
        if file not in known:
            known[file] = max((level(other) + 1 for other in graph[file]), default=0)
        return known[file]

    return {file: level(file) for file in graph}
