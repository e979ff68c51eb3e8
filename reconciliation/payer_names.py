"""Find bank transactions by the beginning of the payer's name, with or without a title."""

from core import rows
from core.admin_lists import MAX_FOUND

MIN_LENGTH = 3
# Banks write names with and without these; people search without them.
TITLES = (
    *("", "นาย", "นาย ", "นาง", "นาง ", "นางสาว", "นางสาว ", "น.ส.", "น.ส. ", "คุณ", "คุณ "),
    *("mr ", "mr. ", "mrs ", "mrs. ", "ms ", "ms. ", "miss ", "khun "),
)  # fmt: skip
# Each beginning is a range of the index. U+10FFFF is behind every other character.
FIND = """
SELECT found.id FROM unnest(%s::text[]) AS beginning, LATERAL (
    SELECT id FROM reconciliation_banktransaction
    WHERE payer_name <> '' AND lower(payer_name) COLLATE "C" >= beginning
        AND lower(payer_name) COLLATE "C" < beginning || chr(1114111)
    LIMIT %s
) AS found
"""


def normalized(text: str) -> str:
    """Small letters, and one space between words."""
    return " ".join(text.lower().split())


def is_name(text: str) -> bool:
    """Whether somebody may search for it as a name. Ids and amounts are no names."""
    name = normalized(text)
    has_other = any(each.isdigit() or each in "_@/%\0" for each in name)
    return len(name) >= MIN_LENGTH and any(each.isalpha() for each in name) and not has_other


def find(text: str) -> list[str]:
    """The ids of at most MAX_FOUND bank transactions, the newest of those that were read."""
    name = normalized(text)
    found = rows.run(FIND, [[title + name for title in TITLES], MAX_FOUND]).fetchall()
    return sorted((movement_id for (movement_id,) in found), reverse=True)[:MAX_FOUND]
