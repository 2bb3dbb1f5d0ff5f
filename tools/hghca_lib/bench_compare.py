# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runs of `tools/hghca bench`: what has changed, and what the spread of the rounds does not let one say."""

import json
from pathlib import Path

from .errors import UsageError
from .figures import LESS_IS_BETTER

UNCLEAR = "-"
KEYS = {"test": str, "bytes": int, "subject": str, "value": (int, float), "unit": str, "min": (int, float),
        "max": (int, float), "runs": int}


def read(name):
    """The report in the file that --json wrote."""
    try:
        report = json.loads(Path(name).read_text())
        good = report["results"] and all(isinstance(row[key], kind) for row in report["results"]
                                         for key, kind in KEYS.items())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{name} has no figures of a bench: {error}", "give a file that `bench --json` wrote") from error
    if not good:
        raise UsageError(f"{name} has no figures of a bench", "give a file that `bench --json` wrote")
    return report


def verdict(old, new):
    """What the newer rounds are: all of them better than all older ones, all worse, or neither."""
    if new["min"] <= old["max"] and old["min"] <= new["max"]:
        return UNCLEAR
    return "better" if (new["min"] > old["max"]) != (new["unit"] in LESS_IS_BETTER) else "worse"


def rows(old, new):
    """(older row, newer row) of each figure, size and subject that both runs have, in the order of the newer."""
    known = {(row["test"], row["bytes"], row["subject"]): row for row in old}
    both = [(known.get((row["test"], row["bytes"], row["subject"])), row) for row in new]
    return [(before, after) for before, after in both if before and before["unit"] == after["unit"]]


def print_table(old, new):
    from .bench import cell
    found = rows(old, new)
    if not found:
        raise UsageError("the two runs have no figure in common", "measure the same figures")
    print(f"\n{'figure':<16}{'bytes':>9} {'subject':<12}{'before':>30}{'after':>30}{'after/before':>14}")
    for before, after in found:
        print(f"{after['test']:<16}{after['bytes'] or '-':>9} {after['subject']:<12}{cell(before):>30}{cell(after):>30}"
              f"{after['value'] / before['value']:>14.3g} {verdict(before, after)}")
