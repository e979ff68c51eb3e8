"""The page of an exception: details, candidates, resolutions, returns and bank messages."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from core import clock, money, personal_data, request_context
from core.logs import redact
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.exceptions import excesses, probable_duplicates
from reconciliation.exceptions.explanations import Subject, bank_label, charged, format_duration
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import confirmation, deduplication
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    Resolution,
    ResolutionState,
    Return,
    SlipCheck,
)
from refunds.models import Refund
from transfers.models import Transfer, TransferContradiction

MAX_SHOWN = 20
Details = list[tuple[str, Any]]


def context(summary: ExceptionSummary) -> dict[str, Any]:
    """The context of the template, which escapes every value."""
    subject = summary.subject
    movement = subject if isinstance(subject, BankTransaction) else getattr(subject, "movement", None)
    return {
        "summary": summary,
        "candidates": [(each, _status_label(each.payment)) for each in summary.candidates],
        "record_url": record_url(subject),
        "details": [(label, value) for label, value in _details(summary) if value not in (None, "")],
        "resolutions": Resolution.objects.filter(subject_id=subject.pk).order_by("created_at", "id"),
        "returns": _returns(movement) if movement else [],
        "notifications": [
            (notification, redacted_message(notification)) for notification in _notifications(subject)
        ],
        "slip_checks": SlipCheck.objects.filter(movement=movement).order_by("-checked_at")[:MAX_SHOWN]
        if movement
        else [],
    }


def redacted_message(notification: BankNotification) -> str:
    """The raw message; long numbers are cut to four digits, and secrets removed."""
    return personal_data.message(redact(notification.body.decode("utf-8", "backslashreplace")))


def order_link(notification: BankNotification) -> str | None:
    """Return a link to the order that the notification names, or None if the order is not ours."""
    order = Transfer.objects.filter(pk=notification.order_id).first() if notification.order_id else None
    return link_to(order) if order else None


def notifications_of_order(order_id: str) -> list[BankNotification]:
    """The notifications of a bank about an order, oldest first."""
    return list(BankNotification.objects.filter(order_id=order_id).order_by("received_at")[:MAX_SHOWN])


def record_url(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[quote(row.pk)])


def _status_label(payment: Payment) -> str:
    return _(str(payment.status_at(clock.now()).label))


def _returns(movement: BankTransaction) -> list[tuple[Return, str]]:
    """The returns of a bank transaction with their destinations."""
    payer_returns = list(movement.returns.order_by("created_at", "id"))
    orders = Transfer.objects.in_bulk([each.id for each in payer_returns])
    return [(each, _destination(orders.get(each.id))) for each in payer_returns]


def _destination(order: Transfer | None) -> str:
    if order is None:
        return _("sent manually")
    if not order.account:
        return _("the payer, by voiding the payment")
    name, account = personal_data.name(order.account_name), personal_data.account(order.account)
    return _("%(name)s, %(account)s at %(bank)s") % {
        "name": name,
        "account": account,
        "bank": bank_label(order.bank_code),
    }


def _details(summary: ExceptionSummary) -> Details:
    subject = summary.subject
    if isinstance(subject, BankTransaction):
        duplicate = summary.probable_duplicate and _transaction_link(summary.probable_duplicate)
        merged_movement = (
            _transaction_link(probable_duplicates.merged_into(subject))
            if subject.resolution_state == ResolutionState.MERGED
            else None
        )
        details = _transaction_details(subject)
        return [(_("Probable duplicate of"), duplicate), (_("Merged into"), merged_movement), *details]
    if isinstance(subject, BankNotification):
        return _notification_details(subject)
    if isinstance(subject, TransferContradiction):
        return _contradiction_details(subject)
    return _refund_details(subject)


def _transaction_details(movement: BankTransaction) -> Details:
    payment = movement.payment
    return [
        (_("Type"), movement.get_kind_display()),
        (
            _("Takes back") if movement.kind == BankTransactionKind.REVERSAL else _("Reversed by"),
            _counterpart(movement),
        ),
        (_("Match result"), movement.get_match_result_display()),
        (_("Resolution"), movement.get_resolution_state_display()),
        (_("Amount"), money.display(movement.amount)),
        (_("Excess"), _excess(movement)),
        (_("Expected amount"), money.display(payment.amount) if payment else None),
        (_("Bank"), movement.bank),
        (_("Bank transaction id"), movement.current_bank_transaction_id),
        (_("Paid at, by the bank's clock"), _time(movement.paid_at)),
        (_("Received at"), _time(movement.received_at)),
        (_("Code expired at"), _time(payment.expires_at) if payment and payment.expires_at else None),
        (_("Confirmed"), None if movement.is_confirmed else _unconfirmed(movement)),
        (_("Sources"), ", ".join(deduplication.sources_of(BankTransaction.objects.filter(pk=movement.pk)))),
        (_("Biller id"), movement.biller_id),
        (_("Reference 1"), movement.reference1),
        (_("Reference 2"), movement.reference2),
        (_("Reference 3"), movement.reference3),
        (_("Merchant"), movement.merchant and link_to(movement.merchant)),
        (_("Payment"), payment and link_to(payment)),
        (_("Merchant's reference"), payment and payment.reference),
        (_("Payment status"), payment and _status_label(payment)),
        (_("Payer"), personal_data.name(movement.payer_name)),
        (_("Payer's bank"), movement.payer_bank_code and bank_label(movement.payer_bank_code)),
        (_("Payer's account"), personal_data.account(movement.payer_account or None)),
        (_("Slip reference"), movement.slip_reference),
    ]


def _excess(movement: BankTransaction) -> str | None:
    if (excess := excesses.find(movement)) is None:
        return None
    return f"{money.display(excess.amount)}, {excess.get_resolution_state_display().lower()}"


def _unconfirmed(movement: BankTransaction) -> str:
    uploader = confirmation.uploader_of(movement)
    by = _(", uploaded by %(actor)s") % {"actor": request_context.display_name(uploader)} if uploader else ""
    return _("no, only a statement reports it%(uploader)s") % {"uploader": by}


def _counterpart(movement: BankTransaction) -> str | None:
    """A link to the credit of a reversal, or to the reversal of a credit."""
    kind = (
        BankTransactionKind.CREDIT
        if movement.kind == BankTransactionKind.REVERSAL
        else BankTransactionKind.REVERSAL
    )
    found = (
        deduplication.find_by_bank_id(movement.bank, name, kind) for name in movement.bank_transaction_ids
    )
    other = next((each for each in found if each is not None), None)
    return None if other is None else _transaction_link(other)


def _transaction_link(movement: BankTransaction) -> str:
    """A link to the page of another bank transaction, with its amount and state."""
    state = (
        movement.get_resolution_state_display()
        if movement.resolution_state
        else movement.get_match_result_display()
    )
    page = reverse("admin:reconciliation_reconciliationexception_change", args=[quote(movement.pk)])
    return format_html('<a href="{}">{}, {}</a>', page, money.display(movement.amount), state.lower())


def _notification_details(notification: BankNotification) -> Details:
    return [
        (_("Bank"), notification.bank),
        (_("Source"), notification.get_source_display()),
        (_("Received at"), _time(notification.received_at)),
        (_("Reported before"), notification.movement and link_to(notification.movement)),
        (_("Order"), order_link(notification)),
    ]


def _refund_details(refund: Refund) -> Details:
    return [
        (_("Amount"), money.display(refund.amount)),
        (_("Merchant"), link_to(refund.merchant)),
        (_("Payment"), link_to(refund.payment)),
        (_("Sent through"), refund.route),
        (_("Sent at"), _time(refund.completed_at) if refund.completed_at else None),
        (_("Returned at"), _time(refund.returned_at) if refund.returned_at else None),
    ]


def _contradiction_details(contradiction: TransferContradiction) -> Details:
    about: Model | None = (
        Payment.objects.filter(pk=contradiction.subject_id).first()
        or Transfer.objects.filter(pk=contradiction.subject_id).first()
    )
    merchant = Merchant.objects.filter(pk=contradiction.merchant_id).first()
    return [
        (_("About"), about and link_to(about)),
        (_("Amount"), money.display(contradiction.amount)),
        (_("Charged"), contradiction.answer_amount and charged(contradiction)),
        (_("Our state"), contradiction.state),
        (_("State at %(sender)s") % {"sender": contradiction.route.partition(":")[2]}, contradiction.answer),
        (_("Bank's reference"), contradiction.bank_reference),
        (_("Merchant"), merchant and link_to(merchant)),
        (_("Received at"), _time(contradiction.created_at)),
        (_("Found by"), contradiction.actor),
    ]


def _notifications(subject: Subject) -> list[BankNotification]:
    """The message itself, and those about the same bank transaction or order."""
    if isinstance(subject, Refund):
        return notifications_of_order(subject.pk)
    if isinstance(subject, TransferContradiction):
        return notifications_of_order(subject.subject_id)
    movement = subject if isinstance(subject, BankTransaction) else subject.movement
    notifications = list(movement.notifications.order_by("received_at")[:MAX_SHOWN]) if movement else []
    if isinstance(subject, BankNotification) and subject not in notifications:
        notifications.append(subject)
    return notifications


def link_to(row: Model) -> str:
    return format_html('<a href="{}">{}</a>', record_url(row), row)


def _time(moment: datetime) -> str:
    elapsed = clock.now() - moment
    relative = (
        _("in %(elapsed)s") % {"elapsed": format_duration(-elapsed)}
        if elapsed < timedelta(0)
        else _("%(elapsed)s ago") % {"elapsed": format_duration(elapsed)}
    )
    return f"{clock.display(moment)}, {relative}"
