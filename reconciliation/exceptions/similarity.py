"""How like two references are: what a person mistypes, a bank cuts short, a spreadsheet spoils. Pure."""

from dataclasses import dataclass
from itertools import combinations, product

MAX_EDITS = 2
MIN_FRAGMENT_LENGTH = 6
"""What is shorter could be a part of any reference."""
MAX_SPELLINGS = 200

CONFUSABLE = ["O0Q", "I1L", "S5", "B8", "Z2", "G6"]
_CONFUSABLE_GROUP = {character: group for group in CONFUSABLE for character in group}


@dataclass(frozen=True, slots=True)
class Similarity:
    """points: the more, the likelier it is the same reference, 60 if it is."""

    score: int
    explanation: str


def normalize(reference: str) -> str:
    """As our references are written: capitals and digits."""
    return "".join(
        character for character in reference.upper() if character.isascii() and character.isalnum()
    )


def spellings(reference: str) -> list[str]:
    """What may have been meant: the reference, tidied, and with up to two confusable characters exchanged."""
    normalized = normalize(reference)
    positions = [at for at, character in enumerate(normalized) if character in _CONFUSABLE_GROUP]
    variants = dict.fromkeys([reference, normalized])
    for count in range(1, MAX_EDITS + 1):
        for selected in combinations(positions, count):
            variants |= dict.fromkeys(_with_confusables_swapped(normalized, selected))
    return [spelling for spelling in list(variants)[:MAX_SPELLINGS] if spelling]


def compare(reported: str, expected: str) -> Similarity | None:
    """How like `given`, by a bank's word, is to a reference of ours; None if it is not."""
    if reported == expected:
        return Similarity(60, "same reference")
    normalized = normalize(reported)
    if normalized == expected:
        return Similarity(55, "same reference in lower case or with other signs")
    return _compare_edited(normalized, expected) or _compare_truncated(normalized, expected)


def edit_distance(one: str, other: str, limit: int = MAX_EDITS) -> int | None:
    """The fewest characters to change, add or leave out between them; None if more than `most`."""
    prefix_length = _common_prefix_length(one, other)
    one, other = one[prefix_length:], other[prefix_length:]
    if not one or not other:
        longer = max(len(one), len(other))
        return longer if longer <= limit else None
    if not limit:
        return None
    options = ((one[1:], other[1:]), (one[1:], other), (one, other[1:]))
    distances = [count for option in options if (count := edit_distance(*option, limit - 1)) is not None]
    return 1 + min(distances) if distances else None


def fragments(reference: str) -> list[str]:
    """Three parts of which one at least is in every reference that is like it; none if it is too short."""
    normalized = normalize(reference)
    if len(normalized) < MIN_FRAGMENT_LENGTH:
        return []
    size = -(-len(normalized) // 3)
    return [normalized[at : at + size] for at in range(0, len(normalized), size)]


def _with_confusables_swapped(normalized: str, positions: tuple[int, ...]) -> list[str]:
    others = [
        [each for each in _CONFUSABLE_GROUP[normalized[at]] if each != normalized[at]] for at in positions
    ]
    return [
        _replace_characters(normalized, dict(zip(positions, choice, strict=True)))
        for choice in product(*others)
    ]


def _replace_characters(normalized: str, changes: dict[int, str]) -> str:
    return "".join(changes.get(at, character) for at, character in enumerate(normalized))


def _compare_edited(normalized: str, expected: str) -> Similarity | None:
    count = edit_distance(normalized, expected)
    if count is None or len(normalized) < MIN_FRAGMENT_LENGTH:
        return None
    confused = _confused_characters(normalized, expected)
    explanation = f"reference differs in {count} character{'s' if count > 1 else ''}"
    if confused:
        return Similarity(50, f"{explanation} ({', '.join(confused)})")
    return Similarity(45 if count == 1 else 35, explanation)


def _confused_characters(normalized: str, expected: str) -> list[str]:
    """What was taken for what, if nothing but confusable characters differs."""
    if len(normalized) != len(expected):
        return []
    differing = [(left, right) for left, right in zip(normalized, expected, strict=True) if left != right]
    confusable = all(right in _CONFUSABLE_GROUP.get(left, "") for left, right in differing)
    return [f"{left} for {right}" for left, right in differing] if confusable else []


def _compare_truncated(normalized: str, expected: str) -> Similarity | None:
    if len(normalized) < MIN_FRAGMENT_LENGTH:
        return None
    if expected.startswith(normalized) or expected.endswith(normalized):
        return Similarity(40, f"reference cut short to {len(normalized)} characters")
    if normalized.startswith(expected) or normalized.endswith(expected):
        return Similarity(40, f"reference with {len(normalized) - len(expected)} characters more")
    return None


def _common_prefix_length(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)
