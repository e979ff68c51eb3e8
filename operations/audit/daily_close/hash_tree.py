"""A hash tree over texts (RFC 9162, 2.1): its root stands for all of them, and a short path proves one.

`clients/python/src/thaiqr/cli/evidence.py` computes the root of a path without the service.
"""

import hashlib
from collections.abc import Sequence

SIZE = 32
"""Bytes of a hash."""


def leaf(text: str) -> bytes:
    return hashlib.sha256(b"\0" + text.encode()).digest()


def nodes(leaves: Sequence[bytes]) -> bytes:
    """All hashes of the tree, one after the other: the leaves, then each level above, and last the root."""
    level, levels = list(leaves), [b"".join(leaves)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        alone = level[-1:] if len(level) % 2 else []  # it goes up unchanged
        level = [hashlib.sha256(b"\1" + left + right).digest() for left, right in pairs] + alone
        levels.append(b"".join(level))
    return b"".join(levels)


def path(number: int, count: int) -> list[int]:
    """The places in `nodes` of the hashes that lead from a leaf to the root of `count` leaves."""
    start, places = 0, []
    while count > 1:
        if number ^ 1 < count:
            places.append(start + (number ^ 1))
        start, number, count = start + count, number // 2, (count + 1) // 2
    return places
