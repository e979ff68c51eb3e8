"""The similarity of two references: mistyped, cut short or changed by a spreadsheet. Pure."""

from dataclasses import dataclass
from itertools import chain, combinations, islice

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rapidfuzz.distance import Levenshtein

MAX_EDITS = 2
MIN_FRAGMENT_LENGTH = 6  # a shorter text could be a part of any reference
MAX_SPELLINGS = 200

CONFUSABLE = ["O0Q", "I1L", "S5", "B8", "Z2", "G6"]
_OTHERS = {character: group.replace(character, "") for group in CONFUSABLE for character in group}


@dataclass(frozen=True, slots=True)
class Similarity:
    """score: the higher, the more likely both are the same reference; 60 if they are equal."""

    score: int
    explanation: str


def normalize(reference: str) -> str:
    """Capitals and digits only, as in our references."""
    return "".join(
        character for character in reference.upper() if character.isascii() and character.isalnum()
    )


def spellings(reference: str, limit: int = MAX_SPELLINGS) -> list[str]:
    """The reference, normalized, and with up to two confusable characters replaced, fewest changes first."""
    normalized = normalize(reference)
    changes = [(at, other) for at, each in enumerate(normalized) for other in _OTHERS.get(each, "")]
    selected = chain.from_iterable(combinations(changes, count) for count in range(1, MAX_EDITS + 1))
    swapped = (_with_changes(normalized, dict(each)) for each in selected)
    # `islice` ends the work, too: a long reference has thousands of spellings.
    variants = dict.fromkeys(islice(chain([reference, normalized], swapped), limit))
    return [spelling for spelling in variants if spelling]


def compare(reported: str, expected: str) -> Similarity | None:
    """Compare a reference that a bank reported to one of ours; None if they are not similar."""
    if reported == expected:
        return Similarity(60, _("same reference"))
    normalized = normalize(reported)
    if normalized == expected:
        return Similarity(55, _("same reference in lower case or with other signs"))
    if len(normalized) < MIN_FRAGMENT_LENGTH:
        return None
    return _compare_edited(normalized, expected) or _compare_truncated(normalized, expected)


def _with_changes(normalized: str, changes: dict[int, str]) -> str:
    return "".join(changes.get(at, character) for at, character in enumerate(normalized))


def _compare_edited(normalized: str, expected: str) -> Similarity | None:
    count = Levenshtein.distance(normalized, expected, score_cutoff=MAX_EDITS)
    if count > MAX_EDITS:
        return None
    confused = _confused_characters(normalized, expected)
    differs = ngettext(
        "reference differs in %(count)s character", "reference differs in %(count)s characters", count
    )
    explanation = differs % {"count": count}
    if confused:
        return Similarity(50, f"{explanation} ({', '.join(confused)})")
    return Similarity(45 if count == 1 else 35, explanation)


def _confused_characters(normalized: str, expected: str) -> list[str]:
    """The confused characters, if nothing else differs."""
    if len(normalized) != len(expected):
        return []
    differing = [(left, right) for left, right in zip(normalized, expected, strict=True) if left != right]
    confusable = all(right in _OTHERS.get(left, "") for left, right in differing)
    text = _("%(left)s for %(right)s")
    return [text % {"left": left, "right": right} for left, right in differing] if confusable else []


def _compare_truncated(normalized: str, expected: str) -> Similarity | None:
    if expected.startswith(normalized) or expected.endswith(normalized):
        return Similarity(40, _("reference cut short to %(count)s characters") % {"count": len(normalized)})
    if normalized.startswith(expected) or normalized.endswith(expected):
        count = len(normalized) - len(expected)
        return Similarity(40, _("reference with %(count)s characters more") % {"count": count})
    return None
