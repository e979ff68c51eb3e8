"""The door: what a bank says is stored raw before anything is judged. One commit; nothing is dropped."""

import logging
from datetime import datetime

from django.db import transaction

from banks import base
from core import ids, vault
from receipts.models import Notice, Receipt, Verdict

log = logging.getLogger("receipts")
FOR_STAFF = {Verdict.CONFLICT, Verdict.UNREADABLE}


def accept(*, bank: str, body: bytes, notice: base.Notice, now: datetime) -> Receipt:
    """Keep the message and the receipt it makes, or the receipt it repeats. Returns that receipt."""
    with transaction.atomic():
        receipt, verdict = _receipt(bank, notice, now)
        keep(bank, body, verdict, receipt, now)
    return receipt


def park(*, bank: str, body: bytes, now: datetime) -> Notice:
    """Keep a message from the right sender that nobody understands; it waits for staff."""
    return keep(bank, body, Verdict.UNREADABLE, None, now)


def keep(bank: str, body: bytes, verdict: Verdict, receipt: Receipt | None, now: datetime) -> Notice:
    """Keep a message as it came, byte for byte."""
    notice_id = ids.new("ntc_", now)
    if verdict in FOR_STAFF:
        log.warning("notice %s of %s waits for staff: %s", notice_id, bank, verdict)
    return Notice.objects.create(
        id=notice_id,
        bank=bank,
        body_sealed=vault.seal(body.decode("latin-1"), context=notice_id),
        verdict=verdict,
        receipt=receipt,
        received_at=now,
    )


def _receipt(bank: str, notice: base.Notice, now: datetime) -> tuple[Receipt, Verdict]:
    """A new receipt, or the one that is there already: the unique index decides between copies at once."""
    draft = _draft(bank, notice, now)
    Receipt.objects.bulk_create([draft], ignore_conflicts=True)
    stored = Receipt.objects.get(bank=bank, bank_transaction_id=notice.bank_transaction_id, kind=notice.kind)
    if stored.pk == draft.pk:
        return stored, Verdict.NEW
    return stored, Verdict.REPEAT if _tells_the_same(stored, draft) else Verdict.CONFLICT


def _draft(bank: str, notice: base.Notice, now: datetime) -> Receipt:
    receipt_id = ids.new("rcp_", now)
    account = notice.payer_account
    return Receipt(
        id=receipt_id,
        bank=bank,
        bank_transaction_id=notice.bank_transaction_id,
        kind=notice.kind,
        biller_id=notice.biller_id,
        reference1=notice.reference1,
        reference2=notice.reference2,
        reference3=notice.reference3,
        amount=notice.amount,
        paid_at=notice.paid_at,
        payer_name=notice.payer_name,
        payer_bank_code=notice.payer_bank_code,
        payer_account_sealed=vault.seal(account, context=receipt_id) if account else "",
        received_at=now,
    )


# What makes two messages the same word of the bank. The payer is left out: banks mask names differently.
_WORD = ("biller_id", "reference1", "reference2", "reference3", "amount", "paid_at")


def _tells_the_same(one: Receipt, other: Receipt) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _WORD)
