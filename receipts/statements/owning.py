"""Whose statement a file is. Under the name of another bank its lines would be money that does not exist."""

from collections.abc import Collection

import banks
from merchants.models import Merchant
from receipts.statements.lines import NotAStatement
from receipts.statements.reading import File

MOST_BILLERS = 10_000
"""So many are looked up; a file that has more is judged by its first ones, in little memory."""
_NAMED = 3


class Billers:
    """The biller ids of a file."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def look(self, biller_id: str) -> None:
        """Empty of a line that nobody can read."""
        if biller_id and len(self.ids) < MOST_BILLERS:
            self.ids.add(biller_id)


def check(file: File, billers: Billers, *, bank: str) -> None:
    """Raises NotAStatement for a file that is not of `bank`.

    Two banks may give one biller id to two merchants: such a one proves nothing against a file.
    """
    code = banks.code_of(bank)
    if code and file.bank_code not in ("", code):
        raise NotAStatement(f"It was written by the bank {file.bank_code}, but {bank} is {code}.")
    owners = list(Merchant.objects.filter(biller_id__in=billers.ids).values_list("biller_id", "bank"))
    ours = {biller_id for biller_id, owner in owners if owner == bank}
    strange = [(biller_id, owner) for biller_id, owner in owners if biller_id not in ours]
    if strange:
        told = _some([f"{biller_id} ({owner})" for biller_id, owner in strange])
        raise NotAStatement(f"It is not a statement of {bank}: merchants of other banks have {told}.")
    if billers.ids and not ours:
        raise NotAStatement(f"No merchant of {bank} has a biller id of this file: {_some(billers.ids)}.")


def _some(found: Collection[str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(sorted(found)[:_NAMED]) + more
