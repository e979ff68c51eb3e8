"""Erase the personal data of payers. What the books need stays: amounts, ids, times and references.

Triggers let these columns change while `qr.erasing` is set (`core.database.triggers`). Why each column is or
is not erased: docs/decisions/86-erasure.md.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from approvals.models import Approval
from audit_trail import recording
from audit_trail.note_models import Note
from core import plain_text
from core.database import rows
from operations.models import PaymentEvidence
from payments.models import Payment, PaymentStatus
from reconciliation.models import (
    HELD_RESULTS,
    BankNotification,
    BankTransaction,
    MatchResult,
    ResolutionState,
    Return,
    ReturnStatus,
    StatementLine,
)
from reconciliation.models.bank_transactions import CREDITED
from refunds.models import Refund, RefundStatus
from request_log.models import HAS_PAYMENT, RequestRecord
from transfers.models import UNFINISHED_STATES, Transfer

Counts = Counter[str]
# A payment or bank transaction that still moves needs the account of its payer.
MOVING = Q(match_result=MatchResult.PENDING) | Q(
    match_result__in=HELD_RESULTS, resolution_state__in=[ResolutionState.OPEN, ResolutionState.SENDING_BACK]
)


class NotFinished(Exception):
    """These payments, bank transactions or orders have not ended, so their payer's data is needed."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(f"Not finished: {', '.join(dict.fromkeys(ids))}.")


@dataclass(frozen=True, slots=True)
class Payer:
    """How banks name who paid: an account or a name at a bank, or the bank's id of one payment."""

    bank_code: str = ""
    account: str = ""
    name: str = ""
    transaction_id: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The bank transactions of a payer, the payments that they paid, and the refunds and returns of these."""

    bank_transaction_ids: Sequence[str]
    payment_ids: Sequence[str] = field(default_factory=list)
    order_ids: Sequence[str] = field(default_factory=list)


def find(payer: Payer) -> Selection:
    """Read each bank transaction from this bank: a few thousand a second by account, which is encrypted.

    Names and accounts are compared as people read them, also of rows that were stored otherwise.
    """
    if payer.transaction_id:
        ids = Q(bank_reference=payer.transaction_id) | Q(later_bank_reference=payer.transaction_id)
        return select(_ids(BankTransaction.objects.filter(ids)))
    found = BankTransaction.objects.filter(payer_bank_code=payer.bank_code)
    if payer.name:
        named = found.exclude(payer_name="").values_list("pk", "payer_name")
        wanted = plain_text.person(payer.name)
        return select([key for key, name in named.iterator() if plain_text.person(name) == wanted])
    sealed = found.exclude(payer_account_sealed="").only("payer_account_sealed")
    return select([each.pk for each in sealed.iterator() if digits(each.payer_account) == payer.account])


def select(bank_transaction_ids: Sequence[str]) -> Selection:
    """The bank transactions, and what hangs on them. A payment that other money paid is left out."""
    credited = BankTransaction.objects.filter(CREDITED, pk__in=bank_transaction_ids, payment__isnull=False)
    payment_ids = list(credited.values_list("payment_id", flat=True))
    order_ids = _ids(Refund.objects.filter(payment__in=payment_ids))
    order_ids += _ids(Return.objects.filter(bank_transaction__in=bank_transaction_ids))
    return Selection(bank_transaction_ids, payment_ids, order_ids)


def count(selection: Selection) -> Counts:
    """What an erasure would change: rows by model."""
    return Counter({name: number for name, number in _run(selection, changes=False).items() if number})


@transaction.atomic
def erase(selection: Selection) -> Counts:
    """Erase and count the rows by model. Raises NotFinished and changes nothing."""
    # In the order of all locks: payments before what hangs on them. Nothing that is locked here can begin to
    # move between the check and the commit.
    for model, ids in ((Payment, selection.payment_ids), (BankTransaction, selection.bank_transaction_ids)):
        list(model.objects.filter(pk__in=ids).order_by("pk").select_for_update(no_key=True).values_list("pk"))
    if unfinished := list(not_finished(selection)):
        raise NotFinished(unfinished)
    rows.run("SET LOCAL qr.erasing = 'on'", [])
    counts = _run(selection, changes=True)
    rows.run("SET LOCAL qr.erasing = 'off'", [])
    return counts


@transaction.atomic
def erase_recorded(selection: Selection, *, by: str, reason: str) -> Counts:
    """Erase, and record who asked for it and why, in one transaction."""
    counts = erase(selection)
    recording.write_erasure(Payment._meta.label_lower, {"requested_by": by, **counts}, reason=reason)
    return counts


def not_finished(selection: Selection) -> Iterator[str]:
    pending = Payment.objects.filter(pk__in=selection.payment_ids, status=PaymentStatus.PENDING)
    yield from _ids(pending)
    yield from _ids(BankTransaction.objects.filter(MOVING, pk__in=selection.bank_transaction_ids))
    orders = selection.order_ids
    yield from _ids(Refund.objects.filter(pk__in=orders, status=RefundStatus.PENDING))
    yield from _ids(Return.objects.filter(pk__in=orders, status=ReturnStatus.PENDING))
    yield from _ids(Transfer.objects.filter(pk__in=orders, state__in=UNFINISHED_STATES))


def _erasures(selection: Selection) -> Iterator[tuple[QuerySet[Any], dict[str, Any]]]:
    """Rows, and the empty values that replace personal data, in the order of all locks."""
    client = dict.fromkeys(("client_name", "client_bank_name", "client_bank_account_sealed"))
    payer = dict.fromkeys(("payer_name", "payer_account_sealed", "description"))
    yield Payment.objects.filter(pk__in=selection.payment_ids), client | payer
    bank_transactions = BankTransaction.objects.filter(pk__in=selection.bank_transaction_ids)
    yield bank_transactions, {"payer_name": "", "payer_account_sealed": ""}
    # What banks wrote about the money and its orders, also without a signature.
    messages = BankNotification.objects.filter(
        Q(bank_transaction__in=selection.bank_transaction_ids)
        | Q(order_id__in=selection.order_ids)
        | Q(confirmation_inquiry__payment_id__in=selection.payment_ids)
    )
    yield messages, {"body_sealed": ""}
    yield Refund.objects.filter(pk__in=selection.order_ids), {"note": None}
    decided = Approval.objects.filter(subject_id__in=selection.order_ids)
    yield decided, {"account_last4": "", "account_name": "", "note": ""}
    orders = Transfer.objects.filter(pk__in=selection.order_ids)
    yield orders, {"account_name": "", "account_sealed": ""}
    lines = StatementLine.objects.filter(bank_transaction__in=selection.bank_transaction_ids)
    yield lines, {"line_sealed": ""}
    requests = RequestRecord.objects.filter(HAS_PAYMENT, payment_id__in=selection.payment_ids)
    yield requests, {"bodies": b""}
    subjects = [*selection.payment_ids, *selection.bank_transaction_ids, *selection.order_ids]
    yield Note.objects.about(subjects), {"text": ""}
    # Without the seed nobody can open the hashes in signed evidence.
    sealed = PaymentEvidence.objects.filter(payment_id__in=bank_transactions.values("payment"))
    yield sealed, {"seed_sealed": ""}


def _run(selection: Selection, *, changes: bool) -> Counts:
    counts: Counts = Counter()
    for found, cleared in _erasures(selection):
        for row in found.order_by("pk").iterator():
            # Only columns that still have personal data.
            values = {name: new for name, new in cleared.items() if getattr(row, name) != new}
            if values:
                counts[row._meta.label_lower] += 1
                if changes:
                    type(row)._base_manager.filter(pk=row.pk).update(**values)
    return counts


def _ids(found: QuerySet[Any]) -> list[str]:
    return list(found.order_by("pk").values_list("pk", flat=True))


def digits(account: str) -> str:
    """Banks and people write accounts with or without dashes."""
    return "".join(filter(str.isalnum, plain_text.folded(account)))
