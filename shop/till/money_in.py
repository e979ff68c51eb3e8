"""What the till shows: its codes, those that are open, and the money that arrived today."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import F, Func, TextField, Value
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core import ids, money
from core.clock import iso
from core.http.paging import NEWEST_FIRST
from core.thai import amounts_in_words, bangkok_days
from merchants.models import Merchant
from operations.data_protection import shop_fence
from payments.models import Payment, PaymentQuerySet, PaymentStatus
from qrcodes import payment_page
from qrcodes.payment_page import PageState
from transactions.models import Transaction, TransactionStatus, TransactionType

TILL = "till"
"""The key of the metadata with the name of the till that made a code."""
MAX_SHOWN, MAX_NAMED = 20, 30
SEARCHED = 200
"""How many of the newest open codes are searched for those of tills: a merchant's server may make many."""
HEADINGS: dict[PageState, str | Promise] = {
    PageState.PENDING: "",
    PageState.PAID: _("Paid"),
    PageState.EXCESS: _("Paid, and more money arrived"),
    PageState.REFUNDED: _("Refunded"),
    PageState.REVIEW: _("Money arrived that does not match"),
    PageState.SUSPENDED: _("The shop takes no payments now"),
    PageState.EXPIRED: _("This code has expired"),
    PageState.FAILED: _("The payment failed"),
}
NOTES: dict[PageState, Promise] = {
    PageState.EXCESS: _("The owner of the shop decides about the rest."),
    PageState.REVIEW: _("The customer must not pay again. The owner of the shop decides about this money."),
    PageState.EXPIRED: _("If the customer has paid already, it shows here soon. Otherwise make a new code."),
    PageState.FAILED: _("The bank declined it. Make a new code."),
}
SAID = _("Money received: %(amount)s")


def language() -> str:
    """Of this person: `th` or `en`."""
    return str(translation.get_language())[:2]


def made_at_tills(found: PaymentQuerySet) -> PaymentQuerySet:
    till = Func(F("metadata"), Value(TILL), function="json_extract_path_text", output_field=TextField())
    return found.alias(till=till).filter(till__isnull=False)


def state(merchant: Merchant, qr_code_ids: Collection[str], now: datetime) -> dict[str, Any]:
    """The named codes, all open ones, and what arrived today. Of codes only those that a till made."""
    mine, today = Payment.objects.of(merchant), bangkok_days.between("today", now)
    assert today is not None, "it is one of the choices"
    pending = mine.filter(status=PaymentStatus.PENDING, qr_code_id__isnull=False)
    succeeded = {"type": TransactionType.PAYMENT, "status": TransactionStatus.SUCCEEDED}
    arrived = Transaction.objects.filter(merchant=merchant, created_at__gte=today[0], **succeeded)
    # Only ids: behind the fence no index gives them in order. What is shown is read behind it.
    with shop_fence.lifted():
        newest = [*pending.order_by(*NEWEST_FIRST)[:SEARCHED].values_list("pk", flat=True)]
        arrived_at = dict(arrived.order_by(*NEWEST_FIRST)[:MAX_SHOWN].values_list("payment_id", "created_at"))
    named = [ids.of_payment(each) for each in qr_code_ids if ids.looks_right(each, "qr_")]
    still_open = made_at_tills(mine.filter(pk__in=newest, expires_at__gt=now)).order_by("-pk")[:MAX_SHOWN]
    by_id = {payment.id: payment for payment in (*made_at_tills(mine.filter(pk__in=named)), *still_open)}
    payments = mine.in_bulk(list(arrived_at))
    for payment in by_id.values():
        payment.merchant = merchant  # which decides whether it can be paid
    return {
        "codes": [_code(by_id[each], now) for each in sorted(by_id, reverse=True)],
        "arrived": [
            {**_payment(payments[each]), "at": iso(at)} for each, at in arrived_at.items() if each in payments
        ],
    }


def _payment(payment: Payment) -> dict[str, Any]:
    named = (payment.metadata or {}).get(TILL)
    till = named if isinstance(named, str) else ""
    return {"amount_display": money.display(payment.received), "reference": payment.reference, "till": till}


def _code(payment: Payment, now: datetime) -> dict[str, Any]:
    shown = payment_page.shown_of(payment, now)
    found = {
        **_payment(payment),
        "qr_code_id": str(payment.qr_code_id),
        "expires_at": iso(payment.expires_at or now),
        "state": shown.state,
        "heading": str(HEADINGS[shown.state]),
        "note": str(NOTES.get(shown.state, "")),
        "may_change": payment_page.may_change(payment, shown, now),
    }
    if shown.state in (PageState.PAID, PageState.EXCESS):
        found["words"] = SAID % {"amount": amounts_in_words.IN_WORDS[language()](payment.received)}
    return found
