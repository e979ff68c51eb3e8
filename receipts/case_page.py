"""What the page of an exception shows: all that is known, what was done, and what the bank said."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import localtime

from core import clock, money, thaibanks, vault
from core.logs import redact
from merchants.models import Merchant
from payments.models import Payment
from receipts import confirming, joining, merging, witnesses
from receipts.cases import Case, Subject
from receipts.models import Act, Kind, Notice, Receipt, Resolution, Return, SlipCheck
from receipts.nearby import Near
from receipts.sentences import span
from refunds.models import Refund
from transfers.models import Contradiction, Transfer

SHOWN = 20
Facts = list[tuple[str, Any]]


def context(case: Case) -> dict[str, Any]:
    """For the template; every value is escaped there."""
    subject = case.subject
    receipt = subject if isinstance(subject, Receipt) else getattr(subject, "receipt", None)
    return {
        "case": case,
        "nearest": [_near(near) for near in case.nearest],
        "record": record_of(subject),
        "facts": [(label, value) for label, value in _facts(case) if value not in (None, "")],
        "acts": Act.objects.filter(subject_id=subject.pk).order_by("at", "id"),
        "returns": _returns(receipt) if receipt else [],
        "messages_of_bank": [(notice, message_of(notice)) for notice in _notices(subject)],
        "slips": SlipCheck.objects.filter(receipt=receipt).order_by("-at")[:SHOWN] if receipt else [],
    }


def message_of(notice: Notice) -> str:
    """The raw message, with long numbers cut to four digits and secrets struck out."""
    return redact(notice.body.decode("utf-8", "backslashreplace"))


def order_of(notice: Notice) -> str | None:
    """A link to the order that it speaks of, if that is ours."""
    order = Transfer.objects.filter(pk=notice.order_id).first() if notice.order_id else None
    return linked(order) if order else None


def told_of(order_id: str) -> list[Notice]:
    """What its bank told of an order of its own accord, the first first."""
    return list(Notice.objects.filter(order_id=order_id).order_by("received_at")[:SHOWN])


def record_of(row: Model) -> str:
    """Where the console shows the row."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[quote(row.pk)])


def bank_named(code: str) -> str:
    """ "014 Siam Commercial Bank"; the code alone of a bank that is not in our list."""
    bank = thaibanks.find(code)
    return f"{code} {bank.name}" if bank else code


def _near(near: Near) -> dict[str, Any]:
    payment = near.payment
    return {
        "payment": payment,
        "code": near.code,
        "asked": money.display(payment.amount),
        "status": payment.status_at(clock.now()).label,
        "words": near.words,
        "is_unpaid": near.is_unpaid,
    }


def _returns(receipt: Receipt) -> list[tuple[Return, str]]:
    """Each with where it goes."""
    made = list(receipt.returns.order_by("created_at", "id"))
    orders = Transfer.objects.in_bulk([each.id for each in made])
    return [(each, _whereto(orders.get(each.id))) for each in made]


def _whereto(order: Transfer | None) -> str:
    if order is None:
        return "sent by hand"
    if not order.account:
        return "where it came from"
    return f"{order.account_name}, {vault.masked(order.account)} at {bank_named(order.bank_code)}"


def _facts(case: Case) -> Facts:
    subject = case.subject
    if isinstance(subject, Receipt):
        same_as = case.same_as and _decided(case.same_as)
        merged = _decided(merging.counted(subject)) if subject.resolution == Resolution.MERGED else None
        facts = _of_receipt(subject)
        return [("Probably the same transaction as", same_as), ("Same transaction as", merged), *facts]
    if isinstance(subject, Notice):
        return _of_notice(subject)
    if isinstance(subject, Contradiction):
        return _of_contradiction(subject)
    return _of_refund(subject)


def _of_receipt(receipt: Receipt) -> Facts:
    payment = receipt.payment
    return [
        ("What the bank says", receipt.get_kind_display()),
        ("Takes back" if receipt.kind == Kind.REVERSAL else "Taken back by", _counterpart(receipt)),
        ("Outcome", receipt.get_outcome_display()),
        ("Decided", receipt.get_resolution_display() if receipt.resolution else "not yet"),
        ("Amount", money.display(receipt.amount)),
        ("Asked for", money.display(payment.amount) if payment else None),
        ("Bank", receipt.bank),
        ("Bank's id", receipt.transaction_id),
        ("Paid, by the bank's clock", _moment(receipt.paid_at)),
        ("Told to us", _moment(receipt.received_at)),
        ("Code expired", _moment(payment.expires_at) if payment and payment.expires_at else None),
        (
            "Confirmed",
            None if receipt.is_confirmed else f"no, only a statement reports it{_uploaded(receipt)}",
        ),
        ("Who says so", ", ".join(witnesses.of(Receipt.objects.filter(pk=receipt.pk)))),
        ("Biller id", receipt.biller_id),
        ("Reference 1", receipt.reference1),
        ("Reference 2", receipt.reference2),
        ("Reference 3", receipt.reference3),
        ("Merchant", receipt.merchant and linked(receipt.merchant)),
        ("Payment", payment and linked(payment)),
        ("Merchant's reference", payment and payment.reference),
        ("Its status now", payment and payment.status_at(clock.now()).label.lower()),
        ("Payer", receipt.payer_name),
        ("Payer's bank", receipt.payer_bank_code and bank_named(receipt.payer_bank_code)),
        ("Payer's account", vault.masked(receipt.payer_account or None)),
        ("Slip", receipt.slip_reference),
    ]


def _uploaded(receipt: Receipt) -> str:
    by = confirming.uploader_of(receipt)
    return f", which {by} uploaded" if by else ""


def _counterpart(receipt: Receipt) -> str | None:
    """The credit that a reversal takes back, or the reversal of a credit, where one was told."""
    kind = Kind.CREDIT if receipt.kind == Kind.REVERSAL else Kind.REVERSAL
    found = (joining.named(receipt.bank, name, kind) for name in receipt.names)
    other = next((each for each in found if each is not None), None)
    return None if other is None else _decided(other)


def _decided(receipt: Receipt) -> str:
    """A link to the page of another receipt that says what became of it."""
    state = receipt.get_resolution_display() if receipt.resolution else receipt.get_outcome_display()
    page = reverse("admin:receipts_waiting_change", args=[quote(receipt.pk)])
    return format_html('<a href="{}">{}, {}</a>', page, money.display(receipt.amount), state.lower())


def _of_notice(notice: Notice) -> Facts:
    return [
        ("Bank", notice.bank),
        ("Came by", notice.get_source_display()),
        ("Told to us", _moment(notice.received_at)),
        ("Told before", notice.receipt and linked(notice.receipt)),
        ("Order", order_of(notice)),
    ]


def _of_refund(refund: Refund) -> Facts:
    return [
        ("Amount", money.display(refund.amount)),
        ("Merchant", linked(refund.merchant)),
        ("Payment", linked(refund.payment)),
        ("Sent by", refund.route),
        ("Sent", _moment(refund.completed_at) if refund.completed_at else None),
        ("Came back", _moment(refund.returned_at) if refund.returned_at else None),
    ]


def _of_contradiction(found: Contradiction) -> Facts:
    about: Model | None = (
        Payment.objects.filter(pk=found.subject_id).first()
        or Transfer.objects.filter(pk=found.subject_id).first()
    )
    merchant = Merchant.objects.filter(pk=found.merchant_id).first()
    return [
        ("About", about and linked(about)),
        ("Amount", money.display(found.amount)),
        ("Charged", found.answer_amount and f"{found.answer_amount} {found.answer_currency}, smallest unit"),
        ("Here", found.state),
        (f"By the word of {found.route.partition(':')[2]}", found.answer),
        ("Bank's reference", found.bank_reference),
        ("Merchant", merchant and linked(merchant)),
        ("Told to us", _moment(found.at)),
        ("Told in answer to", found.actor),
    ]


def _notices(subject: Subject) -> list[Notice]:
    """The message itself, and those that tell of the same transaction or of an order."""
    if isinstance(subject, Refund):
        return told_of(subject.pk)
    if isinstance(subject, Contradiction):
        return told_of(subject.subject_id)
    receipt = subject if isinstance(subject, Receipt) else subject.receipt
    told = list(receipt.notices.order_by("received_at")[:SHOWN]) if receipt else []
    if isinstance(subject, Notice) and subject not in told:
        told.append(subject)
    return told


def linked(row: Model) -> str:
    return format_html('<a href="{}">{}</a>', record_of(row), row)


def _moment(at: datetime) -> str:
    passed = clock.now() - at
    words = f"in {span(-passed)}" if passed < timedelta(0) else f"{span(passed)} ago"
    return f"{localtime(at):%Y-%m-%d %H:%M:%S}, {words}"
