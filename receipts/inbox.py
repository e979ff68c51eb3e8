"""The door: what a bank says is stored raw before anything is judged. One commit; nothing is dropped."""

import logging
from datetime import datetime

from django.db import transaction

from banks import base
from core import ids, origin, vault
from receipts import joining
from receipts.models import Kind, Notice, Receipt, Source, Verdict

log = logging.getLogger("receipts")
FOR_STAFF = {Verdict.CONFLICT, Verdict.UNREADABLE}


def accept(
    *, bank: str, body: bytes, notice: base.Notice, now: datetime, source: Source = Source.CALLBACK
) -> Receipt:
    """Keep the message and the receipt it makes, repeats or joins. Returns that receipt.

    What it brings that is new of a receipt's payer is written after that: where it fails the message is kept,
    and is not answered as received.
    """
    draft = _draft(bank, notice, source, now)
    with transaction.atomic():
        receipt, verdict = _known(draft) or _receipt(draft)
        keep(bank, body, verdict, receipt, now, source)
    if verdict == Verdict.REPEAT:
        joining.learn(receipt, draft)
    return receipt


def park(*, bank: str, body: bytes, now: datetime, source: Source = Source.CALLBACK) -> Notice:
    """Keep a message from the right sender that nobody understands; it waits for staff."""
    return keep(bank, body, Verdict.UNREADABLE, None, now, source)


def keep(
    bank: str,
    body: bytes,
    verdict: Verdict,
    receipt: Receipt | None,
    now: datetime,
    source: Source = Source.CALLBACK,
    *,
    order_id: str | None = None,
) -> Notice:
    """Keep a message as it came, byte for byte. order_id: of an order of ours that it speaks of."""
    notice = draft_notice(bank, body, verdict, receipt, now, source)
    notice.order_id = order_id
    notice.save(force_insert=True)
    return notice


def draft_notice(
    bank: str, body: bytes, verdict: Verdict, receipt: Receipt | None, now: datetime, source: Source
) -> Notice:
    """A message that the caller stores."""
    notice_id = ids.new("ntc_", now)
    if verdict in FOR_STAFF:
        log.warning("notice %s of %s waits for staff: %s", notice_id, bank, verdict)
    return Notice(
        id=notice_id,
        bank=bank,
        source=source,
        body_sealed=vault.seal(body.decode("latin-1"), context=notice_id),
        verdict=verdict,
        receipt=receipt,
        received_at=now,
        request_id=origin.current().request_id,
    )


def _receipt(draft: Receipt) -> tuple[Receipt, Verdict]:
    """A new receipt, or the one that somebody else made while we waited for the locks."""
    # By its name too, so that a bank's id is never both a receipt's own and another's second name.
    joining.hold([f"name {draft.bank} {draft.bank_transaction_id}", joining.name_of(draft.bank, draft)])
    if known := _known(draft):
        return known
    if told := joining.told_by_line(draft):
        joining.name(told, draft.bank_transaction_id)
        return told, Verdict.REPEAT
    if draft.kind == Kind.REVERSAL:
        joining.name_credit_of(draft)
    draft.save(force_insert=True)
    return draft, Verdict.NEW


def _known(draft: Receipt) -> tuple[Receipt, Verdict] | None:
    """The receipt that has this name at this bank: the same again, or a contradiction."""
    stored = joining.named(draft.bank, draft.bank_transaction_id, draft.kind)
    if stored is None:
        return None
    return stored, Verdict.REPEAT if _tells_the_same(stored, draft) else Verdict.CONFLICT


def _draft(bank: str, notice: base.Notice, source: Source, now: datetime) -> Receipt:
    receipt_id = ids.new("rcp_", now)
    account = notice.payer_account
    return Receipt(
        id=receipt_id,
        bank=bank,
        bank_transaction_id=notice.bank_transaction_id,
        source=source,
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
        slip_reference=notice.slip_reference,
        received_at=now,
    )


# What two messages with one transaction id must agree on, besides the bank day. The payer is left out: banks
# mask names differently.
_WORD = ("biller_id", "reference1", "reference2", "reference3", "amount")


def _tells_the_same(stored: Receipt, draft: Receipt) -> bool:
    """Some banks tell milliseconds when asked and whole seconds in their callback, so times can differ."""
    if stored.source == Source.STATEMENT:
        return joining.are_one(stored, draft)
    is_same_word = all(getattr(stored, name) == getattr(draft, name) for name in _WORD)
    return is_same_word and joining.in_one_bank_day(stored.paid_at, draft.paid_at)
