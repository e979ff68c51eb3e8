"""Find bank transactions by the beginning of the payer's name, with any title, or of the family name.

Names are stored as `core.plain_text.name` returns them.
"""

from core import plain_text
from core.console import personal_data
from core.console.admin_lists import MAX_FOUND
from core.database import rows

# Each beginning is a range of an index, of names or of last words. U+10FFFF is behind all other characters.
# A family name of several words (ณ อยุธยา) is found by its last one, and compared.
FIND = """
SELECT found.id FROM unnest(%s::text[]) AS beginning, LATERAL (
    SELECT id FROM reconciliation_banktransaction
    WHERE payer_name <> '' AND matched_at IS NOT NULL AND lower(payer_name) COLLATE "C" >= beginning
        AND lower(payer_name) COLLATE "C" < beginning || chr(1114111)
    LIMIT %s
) AS found
UNION
SELECT found.id FROM unnest(%s::text[]) AS surname, LATERAL (
    SELECT id FROM reconciliation_banktransaction
    WHERE payer_name LIKE '%% %%' AND matched_at IS NOT NULL
        AND split_part(lower(payer_name), ' ', -1) COLLATE "C" >= split_part(surname, ' ', -1)
        AND split_part(lower(payer_name), ' ', -1) COLLATE "C" < split_part(surname, ' ', -1) || chr(1114111)
        AND strpos(lower(payer_name), ' ' || surname) > 0
    LIMIT %s
) AS found
UNION
SELECT id FROM reconciliation_banktransaction
WHERE match_result = '' AND (lower(payer_name) COLLATE "C" ^@ ANY(%s)
    OR EXISTS (SELECT FROM unnest(%s::text[]) AS surname WHERE strpos(lower(payer_name), ' ' || surname) > 0))
"""


def find(text: str) -> list[str]:
    """The ids of at most MAX_FOUND bank transactions, the newest read. None for staff who see no names."""
    if personal_data.is_hidden() or not plain_text.is_name(text):
        return []
    names = _names(text)
    beginnings = sorted(title + each for title in plain_text.TITLES for each in names)
    values = [beginnings, MAX_FOUND, names, MAX_FOUND, beginnings, names]
    found = rows.run(FIND, values).fetchall()
    return sorted((bank_transaction_id for (bank_transaction_id,) in found), reverse=True)[:MAX_FOUND]


def _names(text: str) -> list[str]:
    """How a bank can have written it: with any dash. A typed title may be part of the name."""
    names = {plain_text.folded(text).lower(), plain_text.person(text)}
    return sorted(
        {
            each.replace("-", dash)
            for each in names
            if len(each) >= plain_text.MIN_NAME
            for dash in plain_text.DASHES
        }
    )
