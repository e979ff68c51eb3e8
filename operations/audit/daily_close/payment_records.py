"""What the service knows of a payment, from the order to its refunds, for a bank or the police.

Personal data is `Hidden`. The signed text has only salted hashes of it, so the text may be kept after an
erasure, and a reader sees no more than is opened for that reader.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Q

from audit_trail.acts import Act
from audit_trail.models import ChainLink
from core.clock import iso
from core.console import personal_data
from ledger.models import Entry
from payments.models import ChargeAnswer, Payment
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ConfirmationInquiry,
    InquiryAnswer,
    ReportSource,
    SlipCheck,
    StatementLine,
)
from refunds.models import Refund

Record = dict[str, Any]
Opening = dict[str, str]
Owners = dict[str, str]
"""The payment of each bank transaction, refund and payment."""
Part = Iterator[tuple[str, Record]]
"""Rows with the payment that each is of."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """Personal data. `place` is unique in its record. `masked` is what every reader sees of it."""

    place: str
    value: str
    masked: str = ""

    def openings(self, seed: str) -> dict[str, Opening]:
        """By the name of each form: the salt, which nobody guesses without the seed, and the text."""
        forms = {"sha256": self.value} | ({"masked_sha256": self.masked} if self.masked else {})
        return {form: {"salt": self._salt(seed, form), "text": text} for form, text in forms.items()}

    def _salt(self, seed: str, form: str) -> str:
        return hmac.digest(seed.encode(), f"{form} {self.place}".encode(), "sha256").hex()


def hash_of(opening: Opening) -> str:
    return hashlib.sha256(f"{opening['salt']}\n{opening['text']}".encode()).hexdigest()


def text_of(record: Record, seed: str) -> str:
    def closed(hidden: Hidden) -> dict[str, str]:
        return {form: hash_of(opening) for form, opening in hidden.openings(seed).items()}

    return orjson.dumps(_replaced(record, closed), option=orjson.OPT_SORT_KEYS).decode()


def hidden_of(node: Any) -> Iterator[Hidden]:
    """All personal data of a record."""
    if isinstance(node, Hidden):
        yield node
    elif isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from hidden_of(each)


def _replaced(node: Any, closed: Callable[[Hidden], Any]) -> Any:
    if isinstance(node, Hidden):
        return closed(node)
    if isinstance(node, dict):
        return {name: _replaced(each, closed) for name, each in node.items()}
    return [_replaced(each, closed) for each in node] if isinstance(node, list) else node


def read(payment_ids: Sequence[str]) -> dict[str, Record]:
    """The records of these payments, by their ids. The number of statements is fixed."""
    payments = Payment.objects.filter(pk__in=payment_ids).select_related("merchant", "qr_code").order_by("pk")
    money = list(BankTransaction.objects.filter(payment__in=payment_ids).order_by("pk"))
    refunds = list(Refund.objects.filter(payment__in=payment_ids).order_by("pk"))
    paid_by = {each.pk: str(each.payment_id) for each in money}
    refunded_by = {each.pk: each.payment_id for each in refunds}
    owners = paid_by | refunded_by | {each: each for each in payment_ids}
    found: dict[str, Record] = {each.pk: {"payment": _payment(each)} for each in payments}
    for name, rows in {
        "bank_transactions": ((owners[each.pk], _bank_transaction(each)) for each in money),
        "messages": _messages(owners),
        "statement_lines": _statement_lines(owners),
        "inquiries": _inquiries(payment_ids),
        "slips": _slips(owners),
        "refunds": ((each.payment_id, _columns(each, REFUND)) for each in refunds),
        "ledger": _ledger(owners),
        "audit_trail": _audit_trail(owners),
    }.items():
        for record in found.values():
            record[name] = []
        for payment_id, row in rows:
            found[payment_id][name].append(row)
    return found


PAYMENT = """status amount amount_received amount_refunded currency reference bank_reference payer_matches
    created_at expires_at completed_at card_brand card_last4"""
MONEY = """id bank kind amount biller_id reference1 paid_at received_at source match_result resolution_state
    payer_bank_code"""
REFUND = "id status amount reason route failure_code reversal_id created_at completed_at returned_at"


def _columns(row: Any, names: str, **more: Any) -> Record:
    """These columns of a row, and `more`."""
    values = {name: getattr(row, name) for name in names.split()}
    return {name: iso(each) if isinstance(each, datetime) else each for name, each in values.items()} | more


def _payment(row: Payment) -> Record:
    code, metadata = getattr(row, "qr_code", None), row.metadata
    order = {name: getattr(row, name) for name in ("client_name", "client_bank_name", "description")}
    return _columns(
        row,
        PAYMENT,
        payment_id=row.pk,
        merchant=_columns(row.merchant, "name tax_id bank mode", merchant_id=row.merchant_id),
        code=code and _columns(code, "qr_data biller_id reference1"),
        metadata=None if metadata is None else orjson.dumps(metadata).decode(),
        client_bank_account=_account("order account", row.client_bank_account),
        **{name: _hidden(f"order {name}", text, personal_data.masked_name) for name, text in order.items()},
    )


def _bank_transaction(row: BankTransaction) -> Record:
    return _columns(
        row,
        MONEY,
        bank_reference=row.current_bank_reference,
        payer_name=_hidden(f"{row.pk} name", row.payer_name, personal_data.masked_name),
        payer_account=_account(f"{row.pk} account", row.payer_account),
    )


def _messages(owners: Owners) -> Part:
    """What banks sent or answered, byte for byte: about money and refunds, and without a signature."""
    signed = BankNotification.objects.filter(Q(bank_transaction__in=owners) | Q(order_id__in=owners))
    for row in signed.exclude(source=ReportSource.STATEMENT).order_by("pk"):
        yield owners[str(row.bank_transaction_id or row.order_id)], _message(row)
    unsigned = ConfirmationInquiry.objects.filter(payment_id__in=owners, notification__isnull=False)
    for each in unsigned.select_related("notification").order_by("pk"):
        assert each.notification is not None
        yield each.payment_id, _message(each.notification)


def _message(row: BankNotification) -> Record:
    names = "id bank source result bank_transaction_id order_id received_at"
    return _columns(row, names, body_base64=_hidden(row.pk, base64.b64encode(row.body).decode()))


def _statement_lines(owners: Owners) -> Part:
    found = StatementLine.objects.filter(bank_transaction__in=owners)
    for row in found.select_related("statement").order_by("pk"):
        body = _hidden(row.context, base64.b64encode(row.line).decode())
        of_file = _columns(row.statement, "file_sha256 created_at")
        line = _columns(row, "bank line_number", body_base64=body, **of_file)
        yield owners[str(row.bank_transaction_id)], line


def _inquiries(payment_ids: Sequence[str]) -> Part:
    """What banks and acquirers answered, in our words. The bytes of a bank's answer are a message."""
    names = "outcome transaction_count answer_count first_answered_at answered_at"
    for row in InquiryAnswer.objects.filter(payment__in=payment_ids).order_by("pk"):
        yield row.payment_id, _columns(row, names)
    for answer in ChargeAnswer.objects.filter(charge__in=payment_ids).order_by("pk"):
        yield answer.charge_id, _columns(answer, "outcome created_at")


def _slips(owners: Owners) -> Part:
    """A slip may be shown for one payment and be of the money of another."""
    found = SlipCheck.objects.filter(Q(claimed_payment_id__in=owners) | Q(bank_transaction__in=owners))
    for row in found.order_by("pk"):
        shown_for, paid = row.claimed_payment_id, owners.get(row.bank_transaction_id)
        for each in {shown_for, paid} & owners.keys():
            of_this = {"is_shown_for_it": shown_for == each, "is_of_its_money": paid == each}
            yield each, _columns(row, "id sending_bank transaction_id verdict checked_at", **of_this)


def _ledger(owners: Owners) -> Part:
    entries = Entry.objects.filter(journal__subject_id__in=owners).select_related("journal")
    for row in entries.order_by("journal_id", "pk"):
        of_journal = _columns(row.journal, "type subject_id")
        yield owners[row.journal.subject_id], _columns(row, "account_id amount created_at", **of_journal)


def _audit_trail(owners: Owners) -> Part:
    """The places of what staff did in the hash chain. Views are none of them."""
    links = ChainLink.objects.filter(record__object_id__in=owners).exclude(record__act=Act.VIEWED)
    for row in links.select_related("record").order_by("pk"):
        act = _columns(row.record, "act object_id created_at")
        yield owners[row.record.object_id], _columns(row, "number hash", **act)


def _hidden(place: str, text: str | None, mask: Callable[[str], str] | None = None) -> Hidden | None:
    return Hidden(place, text, mask(text) if mask else "") if text else None


def _account(place: str, number: str | None) -> Hidden | None:
    return _hidden(place, number, lambda text: personal_data.MASK * len(text))
