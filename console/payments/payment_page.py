"""Everything about one payment that staff see on its page."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from audit_trail.notes.acts import note_acts
from audit_trail.notes.pages import VIEW_PERMISSION, NotedPages
from console.payments import summaries
from console.payments.payment_acts import PAYMENT_ACTS
from core import clock
from core.console import admin_columns, personal_data
from core.console.summaries import context
from ledger.models import Entry
from operations.evidence.pages import EvidencePages
from payments.admin import PaymentAdmin
from payments.models import Payment, PaymentStatus
from reconciliation.exceptions import payer_names
from reconciliation.models import BankTransaction
from refunds.models import RefundReversal
from timeline import pages
from webhooks.models import Delivery, DeliveryAttempt

# Each table shows this many rows, the newest first. A payment rarely has more than three.
MAX_ROWS = 20
REVERSED = _("Reversed by the bank")


class PaymentPageAdmin(EvidencePages, NotedPages, PaymentAdmin):
    change_form_template = "admin/payment.html"
    object_acts = PAYMENT_ACTS + note_acts("payments.payment")

    def found_elsewhere(self, texts: list[str]) -> Iterable[Any]:
        """Those of the payer with this name: bank transactions have it in an index."""
        named = BankTransaction.objects.filter(pk__in=payer_names.find(texts[0]))
        return named.exclude(payment=None).values_list("payment", flat=True)

    def prepare_rows(self, shown: Sequence[Payment]) -> None:
        """With those that a bank took back."""
        super().prepare_rows(shown)
        refunded = [row.pk for row in shown if row.status == PaymentStatus.REFUNDED]
        found = set(RefundReversal.objects.filter(payment__in=refunded).values_list("payment", flat=True))
        for row in shown:
            row.is_reversed = row.pk in found  # type: ignore[attr-defined]

    @admin.display(description=_("status"))
    def status_now(self, payment: Any) -> str:
        """A payment that a bank took back was not refunded by the merchant."""
        if not hasattr(payment, "is_reversed"):  # the page of one payment
            self.prepare_rows([payment])
        return admin_columns.badge("failed", REVERSED) if payment.is_reversed else super().status_now(payment)

    def sentence_of(self, row: Payment) -> str:
        return str(summaries.of_payment(row, clock.now()).text)

    def page_context(self, request: HttpRequest, row: Payment) -> dict[str, Any]:
        """Each part needs the right to view its model."""
        may_view, now = request.user.has_perm, clock.now()
        is_pending = row.qr_code_id is not None and row.status_at(now) == PaymentStatus.PENDING
        return {
            "page": pages.staff_page(row, request.GET.get("from", ""), with_notes=may_view(VIEW_PERMISSION)),
            **context(request, summaries.of_payment(row, now)),
            "undelivered": summaries.undelivered(row),
            "picture_url": f"/v1/qr-codes/{row.qr_code_id}/image?format=svg" if is_pending else "",
            "bank_transactions": row.bank_transactions.order_by("-paid_at", "-id")[:MAX_ROWS]
            if may_view("reconciliation.view_banktransaction")
            else None,
            "refunds": row.refunds.order_by("-id")[:MAX_ROWS] if may_view("refunds.view_refund") else None,
            "deliveries": _deliveries(row) if may_view("webhooks.view_delivery") else None,
            "requests_url": _requests_url(row) if may_view("request_log.view_requestrecord") else "",
            "entries": _entries(row) if may_view("ledger.view_entry") else None,
        }


def _deliveries(payment: Payment) -> list[Any]:
    """Of the events of the payment, its refunds and its exceptions, with `request` and `attempts`."""
    subjects = [payment.id, *_keys(payment.refunds), *_keys(payment.exceptions)]
    attempts = Prefetch("attempt_set", DeliveryAttempt.objects.order_by("-number"), to_attr="attempts")
    found = Delivery.objects.filter(event__subject_id__in=subjects).select_related("endpoint", "event")
    shown: list[Any] = list(found.prefetch_related(attempts).order_by("-created_at", "-id")[:MAX_ROWS])
    for delivery in shown:
        delivery.request = personal_data.message(bytes(delivery.event.body).decode())
    return shown


def _keys(rows: Any) -> Any:
    return rows.values_list("pk", flat=True)[:MAX_ROWS]


def _requests_url(payment: Payment) -> str:
    """The list of the merchant's requests about the payment."""
    return f"{reverse('admin:request_log_requestrecord_changelist')}?{urlencode({'q': payment.id})}"


def _entries(payment: Payment) -> "QuerySet[Entry]":
    """Postings of the payment, its bank transactions and its refunds."""
    subjects = [payment.id, *_keys(payment.bank_transactions), *_keys(payment.refunds)]
    found = Entry.objects.filter(journal__subject_id__in=subjects).select_related("journal")
    return found.order_by("journal_id", "id")[: 4 * MAX_ROWS]
