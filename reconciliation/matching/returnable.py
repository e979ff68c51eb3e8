"""Whether money may go back to its payer now.

Staff and merchants ask before they decide, the second person when approving an order, and the order where it
is sent. `exceptions.resolutions` says which kinds of money can go back.
"""

from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import ApprovalKind
from reconciliation.matching import returns, reversals
from reconciliation.matching.refusals import BeingReversed, NotConfirmed
from reconciliation.models import BankTransaction
from transfers.models import Transfer


def check_confirmed(bank_transaction: BankTransaction) -> None:
    """Raises NotConfirmed."""
    if not bank_transaction.is_confirmed:
        text = _(
            "Only an uploaded statement reports this money. The bank or a second person must confirm it "
            "before it can be sent."
        )
        raise NotConfirmed(text)


def check_not_reversed(bank_transaction: BankTransaction) -> None:
    """Raises BeingReversed for money that the bank is taking back itself."""
    if is_being_reversed(bank_transaction):
        text = _("The bank is reversing money of this transaction: ask the bank how much is left.")
        raise BeingReversed(text)


def is_being_reversed(bank_transaction: BankTransaction) -> bool:
    """Whether a reversal waits. The caller holds the lock of the bank transaction."""
    return reversals.find_unapplied(bank_transaction) is not None


def may_be_sent(bank_transaction: BankTransaction, transfer: Transfer) -> bool:
    """Whether it goes to the payer, or where it was asked for. The database refuses what nobody approved."""
    return not is_being_reversed(bank_transaction) and (
        bool(transfer.charge_id)
        or approvals.exists(transfer.id, ApprovalKind.RETURN)
        or returns.is_payers(bank_transaction, transfer.bank_code, transfer.account)
    )
