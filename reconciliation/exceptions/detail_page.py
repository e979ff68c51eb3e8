"""The page of an exception: details, candidates, resolutions, returns and bank messages."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.translation import gettext as _

from core import clock, money
from core.console import admin_columns, personal_data
from core.observing.logs import redact
from ledger.services import NO_FEE, Fee
from merchants.models import Merchant
from payments import fee_terms
from payments.models import Payment
from reconciliation import models
from reconciliation.exceptions import confirmations
from reconciliation.exceptions.explanations import Subject
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import deduplication, probable_duplicates, returns
from refunds.models import Refund
from transfers.models import Transfer, TransferContradiction

MAX_SHOWN = 20


def context(summary: ExceptionSummary) -> dict[str, Any]:
    """The context of the template. It escapes every value, and calls what only some details need."""
    subject, model = summary.subject, summary.subject._meta.model_name
    bank_transaction = (
        subject if isinstance(subject, models.BankTransaction) else getattr(subject, "bank_transaction", None)
    )
    shown: dict[str, Any] = {
        "summary": summary,
        "subject": subject,
        "details": f"admin/reconciliation/details/{model}.html",
        "record_url": reverse(f"admin:{subject._meta.app_label}_{model}_change", args=[quote(subject.pk)]),
        "resolutions": models.Resolution.objects.filter(subject_id=subject.pk).order_by("created_at", "id"),
        "notifications": _notifications(subject),
    }
    if bank_transaction is not None:
        made = list(bank_transaction.returns.order_by("created_at", "id"))
        orders = Transfer.objects.in_bulk([each.id for each in made])
        checks = bank_transaction.slip_checks.order_by("-checked_at")[:MAX_SHOWN]
        shown |= {"returns": [(each, orders.get(each.id)) for each in made], "slip_checks": checks}
    if isinstance(subject, models.BankTransaction):
        shown |= {
            "payment": subject.payment,
            "counterpart": deduplication.counterpart(subject),
            "excess": returns.find_excess(subject),
            "sources": deduplication.sources_of(models.BankTransaction.objects.filter(pk=subject.pk)),
            "merged_into": partial(probable_duplicates.merged_into, subject),
            "uploader": partial(confirmations.uploader_of, subject),
        }
    elif isinstance(subject, models.BankNotification):
        shown |= {"about": order_of(subject), "fee": _fee_of(subject)}
    elif isinstance(subject, TransferContradiction):
        key = subject.subject_id
        shown |= {
            "about": Payment.objects.filter(pk=key).first() or Transfer.objects.filter(pk=key).first(),
            "merchant": Merchant.objects.filter(pk=subject.merchant_id).first(),
            "sender": subject.route.partition(":")[2],
        }
    return shown


def _fee_of(notification: models.BankNotification) -> dict[str, Any]:
    """Both fees of a payment whose statement names another one than the terms of its merchant."""
    bank_transaction = notification.bank_transaction
    if notification.result != models.NotificationResult.FEE_DIFFERS or bank_transaction is None:
        return {}
    payment, named = bank_transaction.payment, bank_transaction.statement_line.named_fee
    assert payment is not None, "only the fee of a payment differs"
    terms = fee_terms.terms_of(payment.merchant_id, bank_transaction.bank, bank_transaction.paid_at)
    by_terms = terms.fee_of(payment.received) if terms else NO_FEE
    taken, text = Fee(payment.fee or 0, payment.fee_vat or 0), _("%(fee)s, and %(vat)s VAT")
    fees = {"named": named, "by_terms": by_terms, "taken": taken}
    return {
        **{
            name: text % {"fee": money.display(each.amount), "vat": money.display(each.vat)}
            for name, each in fees.items()
        },
        "payment": payment,
        "difference": named.total - by_terms.total,
        "terms": terms and terms.words,
    }


def redacted_message(notification: models.BankNotification) -> str:
    """The raw message; long numbers are cut to four digits, and secrets removed."""
    return personal_data.message(redact(notification.body.decode("utf-8", "backslashreplace")))


def order_of(notification: models.BankNotification) -> Transfer | None:
    """The order that the notification names, or None if it is not ours."""
    return Transfer.objects.filter(pk=notification.order_id).first() if notification.order_id else None


def notifications_of_order(order_id: str) -> list[models.BankNotification]:
    """The notifications of a bank about an order, oldest first."""
    return list(models.BankNotification.objects.filter(order_id=order_id).order_by("received_at")[:MAX_SHOWN])


def status_label(payment: Payment) -> str:
    return _(str(payment.status_at(clock.now()).label))


def transaction_link(bank_transaction: models.BankTransaction | None) -> str:
    """A link to the page of another bank transaction, with its amount and state."""
    if bank_transaction is None:
        return ""
    is_resolved = bank_transaction.resolution_state
    state = (
        bank_transaction.get_resolution_state_display()
        if is_resolved
        else bank_transaction.get_match_result_display()
    )
    label = f"{money.display(bank_transaction.amount)}, {state.lower()}"
    return str(admin_columns.link_to(models.ReconciliationException, bank_transaction.pk, label))


def _notifications(subject: Subject) -> list[models.BankNotification]:
    """The message itself, and those about the same bank transaction or order."""
    if isinstance(subject, Refund):
        return notifications_of_order(subject.pk)
    if isinstance(subject, TransferContradiction):
        return notifications_of_order(subject.subject_id)
    bank_transaction = subject if isinstance(subject, models.BankTransaction) else subject.bank_transaction
    notifications = (
        list(bank_transaction.notifications.order_by("received_at")[:MAX_SHOWN]) if bank_transaction else []
    )
    if isinstance(subject, models.BankNotification) and subject not in notifications:
        notifications.append(subject)
    return notifications


def link_to(row: Model | None) -> str:
    return "" if row is None else str(admin_columns.link_to(type(row), row.pk, row))


def moment(at: datetime | None) -> str:
    """The time, and how long ago it was."""
    if at is None:
        return ""
    elapsed = clock.now() - at
    text = _("in %(elapsed)s") if elapsed < timedelta(0) else _("%(elapsed)s ago")
    return f"{clock.display(at)}, {text % {'elapsed': clock.format_duration(abs(elapsed))}}"
