# SPDX-License-Identifier: GPL-2.0-or-later
"""Which operations each two kinds of RDMA device have between them: the suite `peers`, README.md, `tools/hghca bench peers`.

A pair is two kinds. In each direction one of them asks: it sends the requests, and the other one serves.
"""

import dataclasses
import itertools

from . import machine

SEND, WRITE, READ = "SEND", "WRITE", "READ"
ALL = (SEND, WRITE, READ)
# The programs of the CM. Both ends of rping open memory to their peer.
RPING, UCMATOSE = "rping", "ucmatose"
# The letter of each in the matrix of README.md.
LETTERS = {SEND: "S", WRITE: "W", READ: "R", RPING: "C", UCMATOSE: "c"}
RXE = "rxe"
SLOT_BYTES = 4096
LONG_BYTES = 65536


@dataclasses.dataclass(frozen=True)
class Kind:
    """What RC devices of a kind have.

    asks:   operations that they request.
    serves: operations of their peers that they execute.
    bytes:  a SEND that they receive; this many at least.
    """
    asks: tuple = ALL
    serves: tuple = ALL
    bytes: int = LONG_BYTES


KINDS = {
    "hghca": Kind(),
    "hghca-base": Kind(),
    "rsnic": Kind(),
    "ernic": Kind(bytes=SLOT_BYTES),
    "etrnic": Kind(serves=(SEND,), bytes=SLOT_BYTES),
    RXE: Kind(),
}
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))
DIRECTIONS = list(itertools.product(KINDS, repeat=2))
assert [*KINDS] == [*machine.DEVICES, RXE]


def operations(asks, serves):
    """What a device of the kind `asks` requests of one of the kind `serves`."""
    return [operation for operation in ALL if operation in KINDS[asks].asks and operation in KINDS[serves].serves]


def manager(asks, serves):
    """The program that connects the two by the CM."""
    opens = all({WRITE, READ} <= {*KINDS[kind].serves} for kind in (asks, serves))
    return RPING if opens else UCMATOSE


def message_bytes(asks, serves):
    """A SEND that both receive."""
    return min(KINDS[asks].bytes, KINDS[serves].bytes)


def letters(asks, serves):
    """The cell of the matrix."""
    return " ".join(LETTERS[name] for name in (*operations(asks, serves), manager(asks, serves)))


def matrix():
    """The rows of the matrix of README.md, the first one with its head."""
    return [["asks \\ serves", *KINDS], *([asks, *(letters(asks, serves) for serves in KINDS)] for asks in KINDS)]


def markdown():
    """The matrix as README.md has it."""
    head, *rows = [f"| {' | '.join(row)} |" for row in matrix()]
    return "\n".join([head, "|---" * (len(KINDS) + 1) + "|", *rows])
