"""How like two references are: what a person mistypes, a bank cuts short, a spreadsheet spoils. Pure."""

from dataclasses import dataclass
from itertools import combinations, product

MOST_EDITS = 2
SHORTEST_CUT = 6
"""What is shorter could be a part of any reference."""
MOST_SPELLINGS = 200

CONFUSABLE = ["O0Q", "I1L", "S5", "B8", "Z2", "G6"]
_GROUP = {character: group for group in CONFUSABLE for character in group}


@dataclass(frozen=True, slots=True)
class Likeness:
    """points: the more, the likelier it is the same reference, 60 if it is."""

    points: int
    words: str


def tidy(reference: str) -> str:
    """As our references are written: capitals and digits."""
    return "".join(
        character for character in reference.upper() if character.isascii() and character.isalnum()
    )


def spellings(reference: str) -> list[str]:
    """What may have been meant: the reference, tidied, and with up to two confusable characters exchanged."""
    plain = tidy(reference)
    places = [at for at, character in enumerate(plain) if character in _GROUP]
    found = dict.fromkeys([reference, plain])
    for count in range(1, MOST_EDITS + 1):
        for chosen in combinations(places, count):
            found |= dict.fromkeys(_exchanged(plain, chosen))
    return [spelling for spelling in list(found)[:MOST_SPELLINGS] if spelling]


def compare(given: str, ours: str) -> Likeness | None:
    """How like `given`, by a bank's word, is to a reference of ours; None if it is not."""
    if given == ours:
        return Likeness(60, "same reference")
    plain = tidy(given)
    if plain == ours:
        return Likeness(55, "same reference in lower case or with other signs")
    return _edited(plain, ours) or _cut(plain, ours)


def edits(one: str, other: str, most: int = MOST_EDITS) -> int | None:
    """The fewest characters to change, add or leave out between them; None if more than `most`."""
    same = _common_start(one, other)
    one, other = one[same:], other[same:]
    if not one or not other:
        longer = max(len(one), len(other))
        return longer if longer <= most else None
    if not most:
        return None
    ways = ((one[1:], other[1:]), (one[1:], other), (one, other[1:]))
    found = [count for way in ways if (count := edits(*way, most - 1)) is not None]
    return 1 + min(found) if found else None


def pieces(reference: str) -> list[str]:
    """Three parts of which one at least is in every reference that is like it; none if it is too short."""
    plain = tidy(reference)
    if len(plain) < SHORTEST_CUT:
        return []
    size = -(-len(plain) // 3)
    return [plain[at : at + size] for at in range(0, len(plain), size)]


def _exchanged(plain: str, places: tuple[int, ...]) -> list[str]:
    others = [[each for each in _GROUP[plain[at]] if each != plain[at]] for at in places]
    return [_replaced(plain, dict(zip(places, choice, strict=True))) for choice in product(*others)]


def _replaced(plain: str, changes: dict[int, str]) -> str:
    return "".join(changes.get(at, character) for at, character in enumerate(plain))


def _edited(plain: str, ours: str) -> Likeness | None:
    count = edits(plain, ours)
    if count is None or len(plain) < SHORTEST_CUT:
        return None
    swapped = _confused(plain, ours)
    words = f"reference differs in {count} character{'s' if count > 1 else ''}"
    if swapped:
        return Likeness(50, f"{words} ({', '.join(swapped)})")
    return Likeness(45 if count == 1 else 35, words)


def _confused(plain: str, ours: str) -> list[str]:
    """What was taken for what, if nothing but confusable characters differs."""
    if len(plain) != len(ours):
        return []
    differing = [(here, there) for here, there in zip(plain, ours, strict=True) if here != there]
    confusable = all(there in _GROUP.get(here, "") for here, there in differing)
    return [f"{here} for {there}" for here, there in differing] if confusable else []


def _cut(plain: str, ours: str) -> Likeness | None:
    if len(plain) < SHORTEST_CUT:
        return None
    if ours.startswith(plain) or ours.endswith(plain):
        return Likeness(40, f"reference cut short to {len(plain)} characters")
    if plain.startswith(ours) or plain.endswith(ours):
        return Likeness(40, f"reference with {len(plain) - len(ours)} characters more")
    return None


def _common_start(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)
