"""A second person confirms money that only an uploaded statement reports.

The database also refuses confirmation by the person who uploaded the statement.
"""

from datetime import datetime

from django.utils.translation import gettext as _

from audit_trail.acts import ActRefused
from core import request_context
from reconciliation.exceptions import resolution_records
from reconciliation.matching import crediting
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType, StatementLine


@resolution_records.decision(ResolutionType.CONFIRMED)
def confirm_manually(bank_transaction_id: str, *, note: str, now: datetime) -> Resolution:
    """Confirm that the bank has this money, as a second person. Raises ActRefused, AlreadyResolved."""
    bank_transaction: BankTransaction = BankTransaction.objects.locked_with_payment(bank_transaction_id)
    if bank_transaction.is_confirmed:
        if Resolution.objects.filter(subject_id=bank_transaction.id, type=ResolutionType.CONFIRMED).exists():
            raise resolution_records.already_resolved(bank_transaction.id)
        raise ActRefused(_("This money is confirmed: the bank itself reported it."))
    if bank_transaction.resolution_state == ResolutionState.UNDONE:
        raise ActRefused(_("The import that reported this money was undone: it does not count."))
    if request_context.current().actor == uploader_of(bank_transaction):
        raise ActRefused(_("You uploaded this statement: another person must confirm what it reports."))
    resolution = resolution_records.draft(
        bank_transaction_id, ResolutionType.CONFIRMED, note, now, bank_transaction.payment_id
    )
    resolution_records.save(resolution)
    crediting.confirm(bank_transaction, now)
    return resolution


def uploader_of(bank_transaction: BankTransaction) -> str:
    """Return the actor who imported the statement, or an empty text."""
    line = StatementLine.objects.filter(bank_transaction=bank_transaction).select_related("statement").first()
    return line.statement.actor if line else ""
