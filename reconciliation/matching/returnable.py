"""May this money go back to its payer? The one answer, for each step of a return.

Staff and merchants ask when they decide, the second person when approving, and the order where it is sent.
The kind of money and its state are asked before, by `exceptions.resolutions.allowed_types`.
"""

from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import ApprovalKind
from reconciliation.matching import returns, reversals
from reconciliation.matching.refusals import BeingReversed, MerchantRefusal, NotConfirmed
from reconciliation.models import BankTransaction
from transfers.models import Transfer


def refusal(bank_transaction: BankTransaction) -> MerchantRefusal | None:
    """Why this money may not be sent now. The caller holds the lock of the bank transaction."""
    if not bank_transaction.is_confirmed:
        text = _(
            "Only an uploaded statement reports this money. The bank or a second person must confirm it "
            "before it can be sent."
        )
        return NotConfirmed(text)
    if reversals.find_unapplied(bank_transaction) is not None:
        return BeingReversed(
            _("The bank is reversing money of this transaction: ask the bank how much is left.")
        )
    return None


def check(bank_transaction: BankTransaction) -> None:
    """Raises the refusal."""
    if (found := refusal(bank_transaction)) is not None:
        raise found


def may_be_sent(bank_transaction: BankTransaction, transfer: Transfer) -> bool:
    """Whether its order may be sent now: to the payer, or to the account that a second person approved.

    The database refuses to send what was not approved.
    """
    return refusal(bank_transaction) is None and (
        bool(transfer.charge_id)
        or approvals.exists(transfer.id, ApprovalKind.RETURN)
        or returns.is_payers(bank_transaction, transfer.bank_code, transfer.account)
    )
