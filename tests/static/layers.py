# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls between the files of the driver go down: from a layer to one below it, as the list in kernel/hghca.h has them.

The layers that share a line of the list stand beside each other: neither calls the other. A folder of APART is a driver of
its own: no call leads into it or out of it. Within a folder no chain of calls leads from a file back to that file. The check proves itself: each call is turned around in turn, and that must be
noticed.
"""

import re

import graph
from hghca_lib import repo

DRIVER = "kernel"
APART = ("loopback", "ernic")
# A line of the list: files at the top, or headers, each of which stands for the files of its folder.
LAYER = re.compile(r"^ \*\t((?:[\w/]+\.[ch](?:, )?)+)\t", re.MULTILINE)
# Functions of the tracepoints are in trace.c, which trace.h stands for.
HEADERS = {"trace.h": "trace.c"}


def check(report, root, folder):
    """folder: the objects of a build of the driver, below kernel/."""
    probes = repo.path(DRIVER) / "compat/probes"
    files = sorted(str(path.relative_to(repo.path(DRIVER))) for path in repo.path(DRIVER).rglob("*.c")
                   if probes not in path.parents)
    found = graph.symbols(root, folder / DRIVER, [f"{file.removesuffix('.c')}.o" for file in files])
    missed = sorted(set(files) ^ set(found))
    report.result(files and not missed, f"layers: the objects of all {len(files)} files of {DRIVER} read",
                  f"not read: {missed}")
    bad = [line for circle in graph.circles(found) for line in graph.calls(found, circle)]
    report.result(not bad, "layers: no circle in the calls between files of the driver", "\n".join(bad))
    layers = listed(repo.path(DRIVER) / "hghca.h")
    unknown = [file for file in files if layer_of(file) not in (*layers, *APART)]
    report.result(not unknown, "layers: kernel/hghca.h lists the layer of each file", f"not listed: {unknown}")
    wrong = upward(found, layers)
    report.result(not unknown and not wrong, "layers: each call of the driver goes down, or stays in its folder",
                  "\n".join(wrong))
    turned, unnoticed = turn_around(found, layers)
    report.result(turned > 80 and not unnoticed, f"layers: each of {turned} calls that is turned around is noticed",
                  "\n".join(unnoticed))
    report.run("layers: a call up, one to the side and one down are told apart", check_reading)


def listed(header):
    """{layer: its rank}, of the list in a header; the last line is rank 0."""
    lines = LAYER.findall(header.read_text())
    return {layer_of(HEADERS.get(name, name)): rank for rank, line in enumerate(reversed(lines))
            for name in line.split(", ")}


def layer_of(file):
    """The folder of a file of the driver, or the file itself when it stands at the top."""
    return file.split("/")[0]


def upward(found, layers):
    """The calls, as lines, to a layer that is not below the caller's, or that has no place in the list."""
    return graph.calls({file: {other: names for other, names in others.items()
                               if not goes_down(layer_of(file), layer_of(other), layers)}
                        for file, others in found.items()})


def goes_down(caller, called, layers):
    """Whether a call goes down, or stays in its folder."""
    return caller == called or (caller in layers and called in layers and layers[called] < layers[caller])


def turn_around(found, layers):
    """(number of calls between two files, those whose opposite is noticed neither as a circle nor as a call upward)."""
    pairs = [(file, other) for file in found for other in found[file]]
    return len(pairs), [f"{file} → {other}" for file, other in pairs if not notices(found, layers, file, other)]


def notices(found, layers, file, other):
    spoilt = {**found, other: {**found[other], file: {"added"}}}
    added = f"{other} → {file}: added"
    circle = [line for group in graph.circles(spoilt) for line in graph.calls(spoilt, group)]
    return added in circle and (layer_of(file) == layer_of(other) or added in upward(spoilt, layers))


def check_reading():
    layers = {"main.c": 2, "verbs": 1, "net": 1, "hw": 0}
    found = {"main.c": {"verbs/qp.c": {"a"}, "loopback/main.c": {"f"}}, "loopback/main.c": {"loopback/channel.c": {"g"}},
             "loopback/channel.c": {"hw/eq.c": {"h"}}, "verbs/qp.c": {"net/netdev.c": {"b"}, "verbs/cq.c": {"c"}},
             "verbs/cq.c": {"hw/eq.c": {"d"}}, "net/netdev.c": {}, "hw/eq.c": {"main.c": {"e"}}}
    lines = upward(found, layers)
    assert lines == ["hw/eq.c → main.c: e", "loopback/channel.c → hw/eq.c: h", "main.c → loopback/main.c: f",
                     "verbs/qp.c → net/netdev.c: b"], lines
