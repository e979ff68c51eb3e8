"""Money on a bank account that is a transfer of an acquirer, as staff recognise it."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ReasonForm
from audit_trail.acts import ActRefused
from core import clock, plain_text
from core.console.form_fields import PlainCharField
from ledger import accounts, services as ledger
from ledger.journal_types import JournalType
from reconciliation.exceptions import resolution_records
from reconciliation.exceptions.resolutions import allowed_types, lock_usable
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType
from settlements.models import AcquirerTransfer, AcquirerTransferState

SHOWN = 20


def candidates(bank_transaction: BankTransaction) -> list[AcquirerTransfer]:
    """Transfers of this amount that arrived, and that no bank transaction shows; the newest first."""
    of_sandbox = Q(acquirer=accounts.SANDBOX)
    same_mode = of_sandbox if bank_transaction.bank == accounts.SANDBOX else ~of_sandbox
    unseen = AcquirerTransfer.objects.filter(
        same_mode, state=AcquirerTransferState.PAID, bank_transaction_id=None
    )
    return list(unseen.filter(net_amount=bank_transaction.amount).order_by("-created_at")[:SHOWN])


@resolution_records.decision(ResolutionType.ACQUIRER)
def identify(bank_transaction_id: str, *, transfer_id: str, note: str, now: datetime) -> Resolution:
    """Record that the money is this transfer of an acquirer: nobody gets it again."""
    transfer = AcquirerTransfer.objects.select_for_update().filter(pk=transfer_id).first()
    bank_transaction = lock_usable(bank_transaction_id)
    if ResolutionType.ACQUIRER not in allowed_types(bank_transaction):
        raise ActRefused(_("Only money with an unknown reference can be a transfer of an acquirer."))
    if transfer is None or transfer not in candidates(bank_transaction):
        raise ActRefused(_("This transfer has another amount, or the money of it was found before."))
    transfer.set_fields(bank_transaction_id=bank_transaction.id)
    bank_transaction.resolve(ResolutionState.ACQUIRER, now=now)
    ledger.send_back(
        subject_id=bank_transaction.id,
        amount=bank_transaction.amount,
        to=accounts.bank(transfer.acquirer),
        type=JournalType.TRANSFER_SEEN,
        now=now,
    )
    return resolution_records.record(bank_transaction.id, ResolutionType.ACQUIRER, note, now)


class TransferForm(ReasonForm):
    transfer_id = PlainCharField(
        plain=plain_text.visible, label=gettext_lazy("Transfer"), widget=forms.RadioSelect
    )

    def __init__(self, row: ExceptionSummary, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        found = candidates(row.subject) if isinstance(row.subject, BankTransaction) else []
        choices: Any = self.fields["transfer_id"].widget
        choices.choices = [(each.pk, f"{each}, {clock.display(each.created_at)}") for each in found]
