# SPDX-License-Identifier: GPL-2.0-or-later
"""The tutorial of the congested switch: its commands are commands, what it names exists, what it shows happens."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tool import TOOL, same, tier

from hghca_lib import cli, repo
from hghca_lib.tiers import ALL

PAGE = repo.path("docs/tutorial/congested-switch.rst")
GUESTS = 3
SIMULATION = "tests/sim/run"
# In the place of a program of the checkout: writes its arguments to a file.
STUB = f"""#!{sys.executable}
import json, sys
with open("log", "a") as log:
    log.write(json.dumps(sys.argv) + "\\n")
"""
# What the guests print: the number of the guest, a counter, its value.
PRINTED = re.compile(r"^(\d): +(\w+): (\d+)$", re.MULTILINE)


def blocks(text, kind):
    """The code blocks of a kind, without their indent."""
    found = re.findall(rf"^\.\. code-block:: {kind}\n\n((?:   .*\n|\n+(?=   ))+)", text, re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in found]


def counters():
    page = repo.path("docs/reference/counters.rst").read_text()
    return set(re.findall(r"^``(\w+)`` ", page, re.MULTILINE))


def properties():
    page = repo.path("docs/reference/properties.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"[a-z-]+", cell)}


def parameters():
    """The driver's parameters of congestion control."""
    source = repo.path("kernel/devlink.c").read_text()
    return set(re.findall(r'"(congestion_\w+)"', source))


def steps(text):
    """The page's blocks of commands: those that prepare, as one; those that run guests; that of the simulation."""
    found = blocks(text, "sh")
    runs = [block for block in found if block.startswith("run ")]
    simulation = "".join(block for block in found if SIMULATION in block)
    return "".join(block for block in found if block not in runs and block != simulation), runs, simulation


def unknown(text):
    """Names with an underscore that a page marks as code, or that its commands use, and that do not exist."""
    names = set(re.findall(r"``(\w+_\w+)``", text)) | set(re.findall(r"\b(congestion_\w+)", text)) | asked(text)
    return sorted(names - counters() - parameters() - {"ib_write_bw"})


def asked(text):
    """The counters that the commands of a page print."""
    return {name for names in re.findall(r"grep -E ' \(([\w|]+)\):'", text) for name in names.split("|")}


@contextlib.contextmanager
def checkout(**programs):
    """A folder to run the page's commands in, with programs of a checkout: their text, or where they are."""
    with tempfile.TemporaryDirectory() as name:
        for path, program in programs.items():
            at = Path(name) / path
            at.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(program, Path):
                at.symlink_to(program)
            else:
                at.write_text(program)
                at.chmod(0o755)
        yield Path(name)


def shell(folder, script, timeout=60):
    """Run a script of the page; what it makes with mktemp is in the folder."""
    return subprocess.run(["bash", "-euc", script], cwd=folder, env={**os.environ, "TMPDIR": str(folder)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)


def test_names():
    """The counters, parameters and properties that the tutorial of the congested switch names exist"""
    text = PAGE.read_text()
    assert len(counters()) > 60 and len(parameters()) > 10 and len(properties()) > 15, "the tables were not found"
    assert len(asked(text)) > 5, "the commands print no counters"
    same(unknown(text), [], "unknown names")
    named = set(re.findall(r"=hghca\.([\w-]+)=", text))
    named |= set(re.findall(r"^\w.* {2,}``([a-z-]+)`` {2,}", text, re.MULTILINE))
    same(named, {"roce-drain", "roce-buffer", "faults"}, "properties of the page")
    same(sorted(named - properties()), [], "unknown properties")


def test_unknown():
    """A name that is no counter and no parameter is found in a page"""
    same(unknown("``tx_pause`` ``tx_paused`` congestion_react congestion_act\n grep -E ' (rx_pause|rx_none):'\n"),
         ["congestion_act", "rx_none", "tx_paused"], "unknown names")


def parse(options):
    """What the tool's command line makes of options."""
    try:
        return cli.parser().parse_args(options)
    except SystemExit as error:
        raise AssertionError(f"the tool refuses {options}") from error


def test_commands():
    """The commands of the tutorial of the congested switch are accepted by a shell and by the tool's command line"""
    script = "".join(blocks(PAGE.read_text(), "sh"))
    with checkout(**{"tools/hghca": STUB, SIMULATION: STUB}) as folder:
        done = shell(folder, script)
        same((done.returncode, done.stderr), (0, ""), "status and errors")
        started = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        # What the guests execute.
        scripts = [path.read_text() for path in folder.glob("tmp.*/*")]
    runs = [arguments for program, *arguments in started if program == "tools/hghca"]
    assert len(runs) > 3 and len(scripts) == 2, f"{len(runs)} runs, {len(scripts)} scripts"
    for arguments in runs:
        options, groups = cli.split_groups(arguments)
        parsed = parse(options)
        same((parsed.command, parsed.vms), ("exec", GUESTS), "command and guests")
        same([number for number, _ in groups], [*range(1, GUESTS + 1)], "guests with a command")
        scripts += [command for _, (command,) in groups]
    for each in scripts:
        done = subprocess.run(["sh", "-nc", each], capture_output=True, text=True)
        same((done.returncode, done.stderr), (0, ""), f"syntax of {each!r}")


def test_output():
    """The outputs in the tutorial of the congested switch have the counters that its commands print"""
    text = PAGE.read_text()
    shown = [output for output in blocks(text, "text") if PRINTED.search(output)]
    same(len(shown), text.count("\n   run "), "outputs of runs")
    for output in shown:
        same({name for _, name, _ in PRINTED.findall(output)}, asked(text), "counters")
        same({number for number, _, _ in PRINTED.findall(output)}, {"1", "2", "3"}, "guests")


def values(output):
    """(Guest, counter) -> value."""
    return {(int(number), name): int(value) for number, name, value in PRINTED.findall(output)}


def simulated(output):
    """The result of a run of the simulated network, as the table has it."""
    found = re.search(r"(\d+) senders: ([\d.]+ Gb/s) of data, .* queue (\d+ KB) on the average, (\d+ KB) at most, "
                      r"(\d+ of \d+) frames lost to a full queue, (\d+) marked, (\d+) connections failed", output)
    senders, data, average, most, lost, marked, failed = found.groups()
    return {"senders": senders, "data": data, "queue, average": average, "queue, at most": most, "packets lost": lost,
            "packets marked": marked, "connections failed": failed}


def results(text, run):
    """Column `run` of the table of the simulated network."""
    table = re.search(r"^(senders {3}.*\n(?:\S.*\n)+)", text, re.MULTILINE).group(1)
    rows = [re.split(r" {2,}", line) for line in table.splitlines() if not line.startswith("=")]
    return {row[0]: row[1 + run].replace(",", "") for row in rows if row[0] != "congestion control"}


@tier(ALL)
def test_simulation():
    """The figures of the simulated network in the tutorial of the congested switch are what its commands print"""
    text = PAGE.read_text()
    _, _, script = steps(text)
    commands = script.splitlines()
    same(len(commands), 4, "commands")
    with checkout(**{SIMULATION: repo.path(SIMULATION)}) as folder:
        for run, command in enumerate(commands):
            done = shell(folder, command, timeout=1800)
            same(done.returncode, 0, f"status of {command}: {done.stdout}{done.stderr}")
            same(results(text, run), simulated(done.stdout), f"figures of {command}")


@tier(ALL)
def test_switch():
    """The tutorial of the congested switch: packets are lost, then senders are paused, then they slow down"""
    setup, runs, _ = steps(PAGE.read_text())
    with checkout(**{"tools/hghca": Path(TOOL)}) as folder:
        done = [shell(folder, setup + run, timeout=600) for run in runs]
    for each in done:
        same(each.returncode, 0, f"status of a run that printed {each.stdout}{each.stderr}")
    none, pause, pfc, notified = (values(each.stdout) for each in done)
    senders = range(2, GUESTS + 1)
    assert none[1, "rx_buffer_overflow"] > 0 and none[1, "tx_pause"] == 0, f"without flow control: {none}"
    assert all(none[sender, "retransmitted"] > 0 for sender in senders), f"nothing was retransmitted: {none}"
    for found in (pause, pfc):
        # Whether a pause lasts until it is repeated depends on when the host runs the guests.
        assert found[1, "tx_pause"] > 0, f"with flow control: {found}"
        assert all(found[sender, "rx_pause"] > 0 for sender in senders), f"no pause was obeyed: {found}"
        assert found[1, "np_ecn_marked_roce_packets"] == 0, f"marked without ECN: {found}"
    assert notified[1, "np_ecn_marked_roce_packets"] > 0 and notified[1, "np_cnp_sent"] > 0, f"no CNP: {notified}"
    assert all(notified[sender, "rp_cnp_handled"] > 0 for sender in senders), f"no reaction: {notified}"
    for counter in ("tx_pause", "rx_buffer_overflow"):
        assert notified[1, counter] < pfc[1, counter], f"with CNPs: {notified}, without: {pfc}"
