"""Find bank transactions by the beginning of the payer's name, with or without a title.

Names are stored as `core.plain_text.name` returns them.
"""

from core import plain_text
from core.console.admin_lists import MAX_FOUND
from core.database import rows

MIN_LENGTH = 3
# Each beginning is a range of the index. U+10FFFF is behind every other character.
FIND = """
SELECT found.id FROM unnest(%s::text[]) AS beginning, LATERAL (
    SELECT id FROM reconciliation_banktransaction
    WHERE payer_name <> '' AND matched_at IS NOT NULL AND lower(payer_name) COLLATE "C" >= beginning
        AND lower(payer_name) COLLATE "C" < beginning || chr(1114111)
    LIMIT %s
) AS found
UNION
SELECT id FROM reconciliation_banktransaction
WHERE match_result = '' AND lower(payer_name) COLLATE "C" ^@ ANY(%s)
"""


def is_name(text: str) -> bool:
    """Whether somebody may search for it as a name. Ids and amounts are no names."""
    name = plain_text.folded(text)
    has_other = any(each.isdigit() or each in "_@/%\0" for each in name)
    return len(name) >= MIN_LENGTH and any(each.isalpha() for each in name) and not has_other


def find(text: str) -> list[str]:
    """The ids of at most MAX_FOUND bank transactions, the newest of those that were read."""
    beginnings = _beginnings(text)
    found = rows.run(FIND, [beginnings, MAX_FOUND, beginnings]).fetchall()
    return sorted((bank_transaction_id for (bank_transaction_id,) in found), reverse=True)[:MAX_FOUND]


def _beginnings(text: str) -> list[str]:
    """How a bank can have written it: with any title and dash. A typed title may be part of the name."""
    names = {plain_text.folded(text).lower(), plain_text.person(text)}
    names = {
        each.replace("-", dash) for each in names if len(each) >= MIN_LENGTH for dash in plain_text.DASHES
    }
    return sorted(title + each for title in plain_text.TITLES for each in names)
