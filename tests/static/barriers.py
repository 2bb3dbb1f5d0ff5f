# SPDX-License-Identifier: GPL-2.0-or-later
"""Barriers of the driver: towards the device dma_*, between a queue's two ends acquire and release.

A missing barrier shows on no machine that orders its stores, so it is looked for in the text: what
comes right before a store that the device may act on, and how an index that another thread reads is
read and written. The check proves itself: each barrier it finds is spoilt in turn, and must be missed.
"""

import re

from hghca_lib import repo

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
FUNCTION = re.compile(r"^[a-z][^\n;{}#=]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)

# A store that the device may act on, and what has to stand right before it.
STORES = [
    (re.compile(r"\bWRITE_ONCE\(\*[\w>.-]*\brecord\b"), ("dma_wmb()", "dma_mb()")),
    (re.compile(r"\bWRITE_ONCE\(prev->n\w+|^prev->n\w+ = "), ("dma_wmb()",)),
    (re.compile(r"\bhghca_ring\(.*HGHCA_UAR_EQ_ARM"), ("dma_mb()",)),
    (re.compile(r"\bWRITE_ONCE\(\*owner,"), ("if (by_owner) dma_mb()",)),
    (re.compile(r"\bWRITE_ONCE\(entry->owner,"), ("dma_wmb()",)),
    (re.compile(r"\bWRITE_ONCE\(next->flags, cpu_to_le32\("), ("dma_wmb()",)),
]
# The record is the device's to read at any time: it is stored in one piece.
PLAIN_RECORD = re.compile(r"\*[\w>.-]*\brecord\b\s*[-+|&]?=[^=]")
# Who finds an entry to be ours reads the rest of it behind a barrier, or hands it on to its callers, who do so.
HANDED_ON = ("hghca_cqe_is_ours", "hghca_cq_next")
OWNER_READ = re.compile(r"\bREAD_ONCE\((?P<read>[\w>.-]+)->owner\)|"
                        r"\bread_poll_timeout\(READ_ONCE, .*?(?P<polled>[\w>.-]+)->owner\)|"
                        rf"(?:(?P<result>\w+) = )?(?:{'|'.join(HANDED_ON)})\((?:(?P<place>\w+)\(|(?P<argument>\w+)\))?")
OWNER_PLAIN = re.compile(r"->owner\b(?!\s*=[^=])")
OWNER_WRITE = re.compile(r"\b\w+->owner = |\b(?:(?:READ|WRITE)_ONCE|hghca_return_entry)\([^()]*->owner\b|"
                         r"\bread_poll_timeout\(READ_ONCE, .*->owner\b")
# An index in memory that the device writes behind the entries, and the entries up to it. Also the status of a command,
# which the device writes behind the command's output.
DOORBELL_READ = re.compile(r"\bREAD_ONCE\(\*(?:\(__le32 \*\))?[\w>.-]+(?:doorbell|door\.cpu|cmd\.status)\)")
BEHIND_DOORBELL = re.compile(r"^while \(done--|^return ctrl$")
OTHER_BARRIERS = re.compile(r"\b(?:smp_)?(?:mb|rmb|wmb)\(\)|\bsmp_mb__\w+\(")
OF_CPUS_ALONE = re.compile(r"\bsmp_\w+\([^;]*\b(?:owner|record)\b")
# Indices of which one end of a queue is written by one thread and read by another.
TAIL = re.compile(r"\b(?:tx|wq|sq|rq)(?:->|\.)tail\b")
TAIL_WRITE = re.compile(r"\b(?:tx|wq|sq|rq)(?:->|\.)tail\b\s*(?:[-+]?=[^=]|\+\+|--)|\bWRITE_ONCE\([^,]*\btail,")
RELEASED = re.compile(r"\bsmp_store_release\(&\w+->tail, .*")
ACQUIRED = re.compile(r"\bsmp_load_acquire\(&\w+->tail\)|\bREAD_ONCE\([\w>.-]*\btail\)")
# Where nobody else looks yet, or any more.
ALONE = {"hghca_net_tx_alloc", "hghca_net_tx_free", "hghca_qp_reset"}
# The end that writes it, under its lock or in NAPI: it reads what it has written itself.
CONSUMERS = {"hghca_net_tx_complete", "hghca_complete_send", "hghca_complete_recv", "hghca_wq_flush"}


def statements(body):
    """The statements of a function's body, without comments, each in one line."""
    found, depth, start = [], 0, 0
    for place, char in enumerate(body):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char in ";{}" and not depth:
            found.append(" ".join(body[start:place].split()))
            start = place + 1
    return [statement for statement in found if statement]


def functions(text):
    """{name: statements} of a source file."""
    bare = COMMENT.sub(" ", text)
    return {match.group(1): statements(match.group(2)) for match in FUNCTION.finditer(bare)}


def findings(name, text):
    """What is wrong in a file, a line each."""
    for function, lines in functions(text).items():
        place = f"{name}: {function}()"
        for number, line in enumerate(lines):
            before = lines[number - 1] if number else ""
            for store, barriers in STORES:
                if store.search(line) and before not in barriers:
                    yield f"{place}: no {' or '.join(barriers)} before `{line}`"
            if PLAIN_RECORD.search(line) and function not in ALONE:
                yield f"{place}: a record that is not written by WRITE_ONCE(): `{line}`"
            if OTHER_BARRIERS.search(line) or OF_CPUS_ALONE.search(line):
                yield f"{place}: a barrier for CPUs alone, or for all there is: `{line}`"
            if OWNER_PLAIN.search(OWNER_WRITE.sub("", line)):
                yield f"{place}: an owner that is not read by READ_ONCE(): `{line}`"
            yield from tail_findings(place, function, line)
        yield from owner_findings(place, function, lines)
        yield from doorbell_findings(place, lines)


def owner_findings(place, function, lines):
    for number, line in enumerate(lines):
        for read in OWNER_READ.finditer(line):
            entry = entry_of(read)
            if not entry:
                if "hghca_cq_next" not in read.group():
                    yield f"{place}: the owner of an entry without a name: `{line}`"
                continue
            unordered = list(until_barrier(entry, lines[number + 1:]))
            used = next((later for later in [line[read.end():], *unordered] if is_use(entry, later)), None)
            if used:
                yield f"{place}: no dma_rmb() between `{line}` and `{used}`"
            handed_on = re.compile(rf"\breturn\b.*\b{re.escape(entry)}\b")
            if function not in HANDED_ON and any(handed_on.search(later) for later in [line, *unordered]):
                yield f"{place}: its callers are not looked at, as HANDED_ON lacks it: `{line}`"


def doorbell_findings(place, lines):
    for number, line in enumerate(lines):
        used = next((n for n, later in enumerate(lines) if n > number and BEHIND_DOORBELL.search(later)), None)
        if DOORBELL_READ.search(line) and used and "dma_rmb()" not in lines[number:used]:
            yield f"{place}: no dma_rmb() between `{line}` and `{lines[used]}`"


def entry_of(read):
    """The variable that points to an entry whose owner is read, or the function that finds it; None: no use of it."""
    if "hghca_cq_next" in read.group():
        return read["result"]
    return read["read"] or read["polled"] or read["argument"] or read["place"]


def until_barrier(entry, lines):
    """The statements up to a dma_rmb(), as long as the variable is the same entry's."""
    other = re.compile(rf"(?<![\w>.*]){re.escape(entry)} = |\b(?!else\b)\w+ \*{re.escape(entry)} = ")
    for line in lines:
        if line == "dma_rmb()" or other.search(line):
            return
        yield line


def is_use(entry, line):
    """Is the entry dereferenced, given to a function, or found again by the function that finds it?"""
    name = re.escape(entry)
    use = rf"(?<![\w>.]){name}(?:->|\[|\()|\*{name}\b|(?<=\w)(?<!likely)\({name}[,)]|, {name}[,)]"
    return re.search(use, OWNER_READ.sub("", line))


def tail_findings(place, function, line):
    if function in ALONE:
        return
    if TAIL_WRITE.search(line):
        yield f"{place}: written without release: `{line}`"
    elif function not in CONSUMERS and TAIL.search(ACQUIRED.sub("", RELEASED.sub("", line))):
        yield f"{place}: read without acquire: `{line}`"


# A barrier, and what might stand there by mistake.
SPOILT = [
    (re.compile(r"\bdma_(wmb|rmb|mb)\(\);"), r"smp_\1();"),
    (re.compile(r"\bdma_(?:wmb|rmb|mb)\(\);"), ";"),
    (re.compile(r"\bsmp_store_release\(&(\w+->tail), (.*)\);"), r"WRITE_ONCE(\1, \2);"),
    (re.compile(r"\bsmp_store_release\(&(\w+->tail), (.*)\);"), r"\1 = \2;"),
    (re.compile(r"\bsmp_load_acquire\(&(\w+->tail)\)"), r"\1"),
    (re.compile(r"\bREAD_ONCE\((\w+->owner)\)"), r"\1"),
    (re.compile(r"\bREAD_ONCE\((\w+->owner)\)"), r"smp_load_acquire(&\1)"),
    (re.compile(r"\bread_poll_timeout\(READ_ONCE,"), "read_poll_timeout(READ_PLAIN,"),
    (re.compile(r"\bWRITE_ONCE\((\*[\w>.-]*\brecord), (.*)\);"), r"\1 = \2;"),
]


def unnoticed(name, text):
    """(number of mistakes tried, those in which nothing was found)."""
    tried, missed = 0, []
    for right, wrong in SPOILT:
        for match in right.finditer(text):
            spoilt = text[:match.start()] + match.expand(wrong) + text[match.end():]
            tried += 1
            if not list(findings(name, spoilt)):
                missed.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()} as {wrong}")
    return tried, missed


def check(report, root):
    texts = {str(path.relative_to(repo.ROOT)): path.read_text() for path in sorted(repo.path("kernel").rglob("*.[ch]"))}
    bad = [line for name, text in texts.items() for line in findings(name, text)]
    report.result(not bad, "barriers: towards the device dma_*, of indices acquire and release", "\n".join(bad))
    results = [unnoticed(name, text) for name, text in texts.items()]
    tried = sum(count for count, _ in results)
    missed = [line for _, lines in results for line in lines]
    report.result(tried > 30 and not missed, f"barriers: each of {tried} that is spoilt is noticed", "\n".join(missed))
