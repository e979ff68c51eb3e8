"""The JSON of a payment: its API object and the data of its events."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict, cast

from django.db.models import Prefetch, Sum, prefetch_related_objects

from core import failures, money, vault
from core.clock import iso, iso_or_none
from core.http.objects import (
    URI,
    Amount,
    AmountDisplay,
    Currency,
    ExceptionId,
    Instant,
    Metadata,
    PaymentId,
    PaymentLinkId,
    QrCodeId,
    SettlementId,
    one_of,
    satang,
    up_to,
)
from merchants.models import Mode
from payments import match_results
from payments.explanations import UNMATCHED_MONEY
from payments.models import (
    HELD_STATUSES,
    ExceptionStatus,
    PayerMatch,
    Payment,
    PaymentException,
    PaymentHold,
    PaymentStatus,
)

MAX_SHOWN = 20  # Exceptions that the object of a payment shows. `GET .../exceptions` lists all.


class Card(TypedDict):
    last4: Annotated[str, {"pattern": "^[0-9]{4}$"}]
    brand: Annotated[str, up_to(20), "Lower case: visa, mastercard, jcb, ..."]


class PaymentExceptionObject(TypedDict):
    """Money that came for a payment and did not fit. The merchant or the operator decides about it."""

    exception_id: ExceptionId
    reason: Annotated[str, one_of(match_results.PAYMENT_RESULTS), match_results.described()]
    amount: Annotated[int, satang(1), "Satang received."]
    amount_display: AmountDisplay
    status: Annotated[
        str,
        one_of(ExceptionStatus.values),
        "`open` waits for a decision; `attached` paid for another payment; `taken_back` by the bank; "
        "`merged`: the same money as another report; `excess_...`: the payment received its amount, and this "
        "happens to the rest.",
    ]
    at: Annotated[Instant, "When the bank reported it."]


class UnmatchedMoney(TypedDict):
    """Money that may be for a payment: its amount and time fit, its reference is unknown."""

    exception_id: Annotated[ExceptionId, "Name it to the operator, who decides."]
    message: Annotated[str, {"examples": [UNMATCHED_MONEY]}, "For people."]
    at: Annotated[Instant, "When the bank reported it."]


class Payer(TypedDict):
    """Who paid, as the bank reported it."""

    name: Annotated[str | None, up_to(140)]
    bank_code: Annotated[str | None, up_to(3), "See `GET /banks`."]
    bank_name: Annotated[str | None, up_to(140)]
    bank_account: Annotated[str | None, up_to(64), "Only the last four digits are readable."]


class RefundSummary(TypedDict):
    """Satang of the refunds of a payment."""

    completed: Annotated[int, satang(0), "Satang that went back."]
    pending: Annotated[int, satang(0), "Satang of refunds in progress."]
    remaining: Annotated[int, satang(0), "Satang that can still be refunded."]


class PaymentObject(TypedDict):
    """A payment by QR code or by card."""

    payment_id: PaymentId
    qr_code_id: Annotated[QrCodeId | None, "Null for card payments."]
    status: Annotated[str, one_of(PaymentStatus)]
    amount: Amount
    amount_display: AmountDisplay
    currency: Currency
    reference: Annotated[str | None, up_to(35)]
    description: Annotated[str | None, up_to(255)]
    created_at: Instant
    updated_at: Instant
    completed_at: Annotated[
        Instant | None,
        "The bank's payment time, or `created_at` if staff accepted money with a time before it.",
    ]
    card: Annotated[Card | None, "Null for QR payments."]
    metadata: Metadata | None
    amount_received: Annotated[
        int | None,
        satang(1),
        "Satang received. Of a paid payment: only if it is not `amount`. Of any other: the money that "
        "arrived and did not fit, while it is held (see `exceptions`).",
    ]
    fee: Annotated[
        int | None,
        satang(0),
        "Satang that the bank or acquirer takes, without VAT. Null until it is known; a refund does not give "
        "it back. Of a QR code it changes once if the statement of the bank names another one.",
    ]
    fee_vat: Annotated[int | None, satang(0), "Satang: the VAT of the fee. Null until it is known."]
    net: Annotated[
        int | None,
        satang(0),
        "Satang that your balance gets: what was received, less the fee and its VAT. Null until they are "
        "known.",
    ]
    settlement_id: Annotated[
        SettlementId | None,
        "What pays a card payment to you: see `GET /settlements`. Null until it is known.",
    ]
    payment_link_id: Annotated[PaymentLinkId | None, "The payment link that it was paid by."]
    amount_refunded: Annotated[int, satang(0), "Satang that went back to the payer."]
    failure_code: Annotated[str | None, up_to(40), failures.described(failures.OF_PAYMENTS)]
    expires_at: Annotated[Instant | None, "Null if the payment does not expire."]
    authorize_uri: Annotated[
        str | None,
        URI,
        up_to(1000),
        "The page where the payer authorises the charge (3-D Secure); else null.",
    ]
    exceptions: Annotated[
        list[PaymentExceptionObject],
        "Money that arrived and did not match: the newest 20, oldest first; usually empty.",
    ]
    exceptions_has_more: Annotated[
        bool, "Whether there are older ones: list them by `GET .../payments/{payment_id}/exceptions`."
    ]
    unmatched_money: NotRequired[
        Annotated[
            UnmatchedMoney | None,
            "Only in the answer of `GET .../payments/{payment_id}`. Not null while an unpaid payment is one "
            "of the most likely ones for money of its amount that arrived at your biller id with an unknown "
            "reference. It is no proof that this customer paid.",
        ]
    ]
    payer_matches: Annotated[
        str | None,
        one_of(PayerMatch),
        "Whether the payer is who you named by `client_name` and `client_bank_account`. Titles do not count, "
        "names may be cut, and in Thai or Latin letters. `unknown`: the bank reports too little. Null until "
        "it is paid, and if you named nobody. `no` is no proof of fraud: look before you ship.",
    ]
    hold: Annotated[
        str | None,
        one_of(PaymentHold),
        "Not null: do not ship yet, because another person paid than you named, or the bank reports too "
        "little about who paid. Ask the customer, then lift it or refund the payment. Null unless your shop "
        "holds such payments by its settings. It holds no money.",
    ]
    payer: Annotated[Payer | None, "Null until a bank has reported the payer, and for cards."]
    bank_reference: Annotated[str | None, {"pattern": "^.{1,64}$"}, "The bank's id of the payer's transfer."]
    refunds: RefundSummary
    livemode: Annotated[bool, "False for test money."]


class _PaymentAtEvent(TypedDict):
    payment_id: PaymentId
    status: Annotated[str, one_of(PaymentStatus)]
    amount: Amount
    amount_display: AmountDisplay
    currency: Currency
    qr_code_id: QrCodeId | None
    reference: Annotated[str | None, up_to(35)]
    metadata: Metadata | None
    failure_code: Annotated[str | None, up_to(40), failures.described(failures.OF_PAYMENTS)]
    payment_link_id: NotRequired[Annotated[PaymentLinkId, "Absent if it is of no payment link."]]


class PaymentEventData(_PaymentAtEvent):
    """A payment at the moment of an event."""

    amount_received: NotRequired[Annotated[int, satang(1), "Satang received; absent if they are the amount."]]
    fee: NotRequired[Annotated[int, satang(0), "As in the payment object; absent until it is known."]]
    fee_vat: NotRequired[Annotated[int, satang(0), "As in the payment object; absent until it is known."]]
    net: NotRequired[Annotated[int, satang(0), "As in the payment object; absent until it is known."]]
    payer_matches: NotRequired[
        Annotated[str, one_of(PayerMatch), "As in the payment object; absent if you named nobody."]
    ]
    hold: NotRequired[Annotated[str, one_of(PaymentHold), "Do not ship yet; absent if it is not held."]]


class PaymentFeeEventData(_PaymentAtEvent):
    """A payment whose bank or acquirer said later what it takes."""

    fee: Annotated[int, satang(0), "Satang, without VAT."]
    fee_vat: Annotated[int, satang(0), "Satang: the VAT of the fee."]
    net: Annotated[int, satang(0), "Satang that your balance gets."]


class PaymentExceptionEventData(_PaymentAtEvent):
    """A payment, and what became of money that arrived for it and did not fit."""

    amount_received: Annotated[int | None, satang(1), "As in the payment object."]
    exception: PaymentExceptionObject


def payment_object(payment: Payment, now: datetime) -> PaymentObject:
    """Both objects of the interface in one: `card` is null for QR codes, `qr_code_id` for cards.

    It needs the merchant of the payment: set it where it is known, which saves a query.
    """
    exceptions, last4, brand = _exceptions(payment), payment.card_last4, payment.card_brand
    status = payment.status_at(now)
    # Expiry is a change, also if it is not stored yet.
    updated_at = payment.updated_at if status == payment.status else payment.expires_at
    return {
        "payment_id": payment.id,
        "qr_code_id": payment.qr_code_id,
        "status": status,
        "amount": payment.amount,
        "amount_display": money.with_code(payment.amount),
        "currency": payment.currency,
        "reference": payment.reference,
        "description": payment.description,
        "created_at": iso(payment.created_at),
        "updated_at": iso(updated_at),  # type: ignore[arg-type]
        "completed_at": iso_or_none(payment.completed_at),
        "card": None if last4 is None or brand is None else {"last4": last4, "brand": brand},
        "metadata": payment.metadata,
        "amount_received": _amount_received(payment, exceptions),
        "fee": payment.fee,
        "fee_vat": payment.fee_vat,
        "net": payment.net,
        "settlement_id": payment.settlement_id,
        "payment_link_id": payment.payment_link_id,
        "amount_refunded": payment.amount_refunded,
        "failure_code": payment.failure_code,
        "expires_at": iso_or_none(payment.expires_at),
        "authorize_uri": payment.authorize_uri if payment.status == PaymentStatus.PENDING else None,
        "exceptions": [exception_object(each) for each in exceptions[-MAX_SHOWN:]],
        "exceptions_has_more": len(exceptions) > MAX_SHOWN,
        "payer_matches": payment.payer_matches,
        "hold": payment.hold,
        "payer": _payer(payment),
        "bank_reference": payment.bank_reference,
        "refunds": {
            "completed": payment.amount_refunded,
            "pending": payment.amount_refunding,
            "remaining": payment.refundable_amount if payment.status == PaymentStatus.SUCCEEDED else 0,
        },
        "livemode": payment.merchant.mode == Mode.LIVE,
    }


def load_exceptions(payments: Sequence[Payment]) -> None:
    """Read the exceptions of these payments by one query, or by none: most payments have none."""
    prefetch_related_objects([each for each in payments if each.has_exceptions], newest_exceptions())


def event_data(payment: Payment) -> PaymentEventData:
    """`data` of the payment events. `amount_received` is there only if it differs from the amount."""
    data = cast(PaymentEventData, _at_event(payment, payment.status))
    if payment.amount_received is not None:
        data["amount_received"] = payment.amount_received
    if payment.fee is not None and payment.fee_vat is not None and payment.net is not None:
        data |= {"fee": payment.fee, "fee_vat": payment.fee_vat, "net": payment.net}
    if payment.payer_matches is not None:
        data["payer_matches"] = payment.payer_matches
    if payment.hold is not None:
        data["hold"] = payment.hold
    return data


def _at_event(payment: Payment, status: str) -> _PaymentAtEvent:
    data: _PaymentAtEvent = {
        "payment_id": payment.id,
        "status": status,
        "amount": payment.amount,
        "amount_display": money.with_code(payment.amount),
        "currency": payment.currency,
        "qr_code_id": payment.qr_code_id,
        "reference": payment.reference,
        "metadata": payment.metadata,
        "failure_code": payment.failure_code,
    }
    if payment.payment_link_id is not None:
        data["payment_link_id"] = payment.payment_link_id
    return data


def exception_object(exception: PaymentException) -> PaymentExceptionObject:
    """Money that did not fit, as the payment, its events and its own endpoints show it."""
    return {
        "exception_id": exception.id,
        "reason": exception.reason,
        "amount": exception.amount,
        "amount_display": money.with_code(exception.amount),
        "status": exception.status,
        "at": iso(exception.reported_at),
    }


def unmatched_money_object(exception_id: str, reported_at: datetime) -> UnmatchedMoney:
    """Money with an unknown reference that may be for the payment. The operator decides about it."""
    return {"exception_id": exception_id, "message": UNMATCHED_MONEY, "at": iso(reported_at)}


def exception_event_data(exception: PaymentException, now: datetime) -> PaymentExceptionEventData:
    """`data` of the events about an exception: its payment at this moment, and the exception."""
    payment = exception.payment
    return {
        **_at_event(payment, payment.status_at(now)),
        "amount_received": _amount_received(payment, _exceptions(payment)),
        "exception": exception_object(exception),
    }


def newest_exceptions(path: str = "exceptions") -> Prefetch[Any]:
    """What objects of payments need of the exceptions, however many there are."""
    newest = PaymentException.objects.order_by("-reported_at", "-id")
    return Prefetch(path, queryset=newest[: MAX_SHOWN + 1], to_attr="newest_exceptions")


def _exceptions(payment: Payment) -> Sequence[PaymentException]:
    """The newest exceptions of the payment, the oldest of them first; one more than MAX_SHOWN if there are.

    The flag saves a query: most payments have none.
    """
    if not payment.has_exceptions:
        return ()
    load_exceptions([payment])
    newest: list[PaymentException] = payment.newest_exceptions  # type: ignore[attr-defined]
    return newest[::-1]


def _amount_received(payment: Payment, exceptions: Sequence[PaymentException]) -> int | None:
    """The satang that paid, if it is another amount. Before a payment is paid, what is held for it."""
    if payment.completed_at is not None:
        return payment.amount_received
    if len(exceptions) > MAX_SHOWN:
        held = payment.exceptions.filter(status__in=HELD_STATUSES).order_by()
        return int(held.aggregate(satang=Sum("amount"))["satang"] or 0) or None
    return sum(each.held_amount for each in exceptions) or None


def _payer(payment: Payment) -> Payer | None:
    """Who paid, as the bank reported it; null before that, and for cards."""
    code, account = payment.payer_bank_code, payment.payer_account
    if payment.payer_name is None and code is None and account is None:
        return None
    return {
        "name": payment.payer_name,
        "bank_code": code,
        "bank_name": payment.payer_bank_name,
        "bank_account": vault.masked(account),
    }
