"""Whose statement a file is. Under the name of another bank its lines would be money that does not exist."""

from collections.abc import Collection

import banks
from merchants.models import Merchant
from reconciliation.statements.lines import InvalidStatementFile
from reconciliation.statements.statement_file import StatementFile

MAX_BILLERS = 10_000
"""So many are looked up; a file that has more is judged by its first ones, in little memory."""
_MAX_LISTED = 3


class BillerIds:
    """The biller ids of a file."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def add(self, biller_id: str) -> None:
        """Empty of a line that nobody can read."""
        if biller_id and len(self.ids) < MAX_BILLERS:
            self.ids.add(biller_id)


def check_bank(file: StatementFile, billers: BillerIds, *, bank: str) -> None:
    """Raises InvalidStatementFile for a file that is not of `bank`.

    Two banks may give one biller id to two merchants: such a one proves nothing against a file.
    """
    code = banks.bank_code_of(bank)
    if code and file.bank_code not in ("", code):
        raise InvalidStatementFile(f"It was written by the bank {file.bank_code}, but {bank} is {code}.")
    owners = list(Merchant.objects.filter(biller_id__in=billers.ids).values_list("biller_id", "bank"))
    of_this_bank = {biller_id for biller_id, owner in owners if owner == bank}
    of_other_banks = [(biller_id, owner) for biller_id, owner in owners if biller_id not in of_this_bank]
    if of_other_banks:
        listed = _first_few([f"{biller_id} ({owner})" for biller_id, owner in of_other_banks])
        raise InvalidStatementFile(
            f"It is not a statement of {bank}: merchants of other banks have {listed}."
        )
    if billers.ids and not of_this_bank:
        raise InvalidStatementFile(
            f"No merchant of {bank} has a biller id of this file: {_first_few(billers.ids)}."
        )


def _first_few(found: Collection[str]) -> str:
    more = f" and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
    return ", ".join(sorted(found)[:_MAX_LISTED]) + more
