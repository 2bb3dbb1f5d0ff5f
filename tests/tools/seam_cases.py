# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page of the seam names exists, and those it calls the callers call it."""

import re

from pages import CORE, quoted, rows
from tool import same

from hghca_lib import repo

PAGE = repo.path("docs/explanation/seam.rst")


def is_file(name):
    return name.endswith((".cc", ".h"))


def cells(row):
    """What the second and the third cell of a row name: functions, their files, their callers."""
    _, used, callers = re.split(r"\n     - ", row)
    names = quoted(used)
    return [name for name in names if not is_file(name)], [name for name in names if is_file(name)], quoted(callers)


def wrong(functions, files, callers):
    """What of a row is not so."""
    absent = [name for name in (*files, *callers) if not (CORE / name).is_file()]
    if absent:
        return absent
    text = "\n".join((CORE / name).read_text() for name in files)
    found = [name for name in functions if not re.search(rf"\b{last(name)}\b", text)]
    # A row has several functions; each caller calls one of them at least.
    return found + [name for name in callers
                    if not any(re.search(rf"\b{last(each)}\b", (CORE / name).read_text().replace("->", "."), re.I)
                               for each in functions)]


def last(name):
    return name.rpartition("::")[2]


def test_named():
    """Each function and file of the page of the seam exists, and its callers name it"""
    found = rows(PAGE.read_text(), ("Use\n",))
    same(len(found) > 40, True, "rows were found")
    same([row for row in found if wrong(*cells(row))], [], "rows that are not so")


def test_wrong():
    """A function, a file or a caller that does not exist is found"""
    good = (["WqeChain::peek"], ["jingzhao/wqe_chain.cc"], ["transport/send_queue.cc"])
    same(wrong(*good), [], "what is so")
    same(wrong(["WqeChain::peeks"], *good[1:]), ["WqeChain::peeks", "transport/send_queue.cc"], "no such function")
    same(wrong(good[0], ["jingzhao/none.cc"], good[2]), ["jingzhao/none.cc"], "no such file")
    same(wrong(*good[:2], ["transport/scheduler.cc"]), ["transport/scheduler.cc"], "no such call")
