from core.http import fields
from core.http.paging import PeriodPageQuery, ZonedQuery
from ledger.journal_types import BalanceTransactionType
from transactions.models import TransactionStatus, TransactionType

LISTED_TYPES = [TransactionType.PAYMENT, TransactionType.REFUND]  # failed attempts are found by status


class TransactionQuery(PeriodPageQuery):
    """Filters of the transaction history."""

    status = fields.Choice(TransactionStatus.values, required=False, help_text="Only this status.")
    type = fields.Choice([kind.value for kind in LISTED_TYPES], required=False, help_text="Only this type.")


class BalanceTransactionQuery(PeriodPageQuery):
    """Filters of what changed the balance."""

    type = fields.Choice(BalanceTransactionType.values, required=False, help_text="Only this type.")


class BalanceQuery(ZonedQuery):
    """The instant of the balance."""

    at = fields.QueryInstant(
        end=True,
        required=False,
        help_text="The balance at the end of this date (of `timezone`), or at this instant.",
    )
