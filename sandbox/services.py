"""Pay a QR code at the sandbox bank: read it, play the scenario, write down what to tell the service."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from core import clock, ids, references, thaiqr
from core.thaiqr import Payload
from sandbox import scenarios, shapes
from sandbox.errors import InvalidPaidAt, InvalidQrData, InvalidReportAt
from sandbox.models import SandboxCall, SandboxEntry, SandboxPayment
from sandbox.scenarios import Transfer

YEAR = timedelta(days=366)
# Between two calls about one payment: a bank tells in order, and a demonstration is not kept waiting.
SPACING = timedelta(seconds=0.5)
# Between the entries about one payment: long enough that the first is known when the second comes.
NEXT_ENTRY = timedelta(seconds=3)
# Name, bank code, account. The last digits stay clear of those that choose an outcome of outgoing money.
PAYERS = (
    ("สมชาย ใจดี", "014", "4051234567"),
    ("สมหญิง รักไทย", "004", "0382345678"),
    ("MALEE SRISUK", "002", "1963456789"),
)
# How often the page lets one code be paid: each time after the first is an exception for staff.
MOST_WITHOUT_A_KEY = 10
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Order:
    """An order that passed every check and only has to be written down."""

    qr_data: str
    scenario: str
    transfers: tuple[Transfer, ...]


def read(qr_data: str) -> Payload:
    """The bill payment in `qr_data`. Raises InvalidQrData."""
    try:
        payload = thaiqr.parse(qr_data)
    except thaiqr.BadPayload as error:
        raise InvalidQrData(f"Not a Thai QR payment: {error}.", param="qr_data") from None
    if payload.kind != thaiqr.Kind.BILL_PAYMENT or not payload.amount or _CONTROL.search(qr_data):
        raise InvalidQrData(param="qr_data")
    return payload


def read_known(qr_data: str) -> Payload:
    """`read` for a payer without a key: only codes of test merchants, and each only so often.

    The bank knows them by the check characters in reference 1. Raises InvalidQrData.
    """
    payload = read(qr_data)
    biller_id, reference1 = payload.biller_id or "", payload.reference1 or ""
    if not references.is_checked(biller_id, reference1, settings.SANDBOX_BANK_SECRET):
        raise InvalidQrData("This bank only pays codes of test merchants.", param="qr_data")
    paid = SandboxPayment.objects.filter(biller_id=biller_id, reference1=reference1)
    if paid.count() >= MOST_WITHOUT_A_KEY:
        message = f"This code was paid {MOST_WITHOUT_A_KEY} times. To pay it more often, use a test key."
        raise InvalidQrData(message, param="qr_data")
    return payload


def order(
    *,
    qr_data: str,
    scenario: str,
    now: datetime,
    paid_at: datetime | None = None,
    report_at: datetime | None = None,
) -> Order:
    """Judge an order to pay; nothing is stored.

    Raises InvalidQrData, InvalidScenario, InvalidPaidAt, InvalidReportAt.
    """
    if paid_at and abs(paid_at - now) > YEAR:
        raise InvalidPaidAt(param="paid_at")
    if report_at and abs(report_at - now) > YEAR:
        raise InvalidReportAt(param="report_at")
    payload, chosen = read(qr_data), scenarios.named(scenario)
    told = _transfer(
        payload, paid_at=paid_at or now + chosen.pays_after, report_at=report_at or now + chosen.reports_after
    )
    return Order(qr_data, scenario, tuple(chosen.play(told)))


def carry_out(order: Order, *, now: datetime) -> SandboxPayment:
    """Store the payments of the order, what the books say and when it is told; returns the first payment."""
    payments = [(_payment(order, transfer, now), transfer) for transfer in order.transfers]
    entries = [(_entries(payment, transfer), transfer) for payment, transfer in payments]
    calls = [call for booked, transfer in entries for call in _calls(booked, transfer, now)]
    with transaction.atomic():
        SandboxPayment.objects.bulk_create([payment for payment, _ in payments])
        SandboxEntry.objects.bulk_create([entry for booked, _ in entries for entry in booked])
        SandboxCall.objects.bulk_create(calls)
    return payments[0][0]


def ordered_with(payment: SandboxPayment) -> list[SandboxPayment]:
    """The other payments of the same order."""
    same = SandboxPayment.objects.filter(biller_id=payment.biller_id, reference1=payment.reference1)
    return list(same.filter(created_at=payment.created_at).exclude(pk=payment.pk))


def _transfer(payload: Payload, *, paid_at: datetime, report_at: datetime) -> Transfer:
    return Transfer(
        biller_id=payload.biller_id or "",
        reference1=payload.reference1 or "",
        reference2=payload.reference2 or "",
        reference3=payload.reference3 or "",
        amount=payload.amount or 0,
        paid_at=paid_at,
        report_at=report_at,
    )


def _payment(order: Order, transfer: Transfer, now: datetime) -> SandboxPayment:
    name, bank_code, account = secrets.choice(PAYERS)
    return SandboxPayment(
        id=ids.new("sbp_", now),
        qr_data=order.qr_data,
        scenario=order.scenario,
        biller_id=transfer.biller_id,
        reference1=transfer.reference1,
        reference2=transfer.reference2,
        reference3=transfer.reference3,
        amount=transfer.amount,
        payer_name=name,
        payer_bank_code=bank_code,
        payer_account=account,
        slip_reference=_slip_reference(transfer.paid_at),
        paid_at=transfer.paid_at,
        created_at=now,
    )


def _slip_reference(paid_at: datetime) -> str:
    """As the banks make it: the day in Bangkok, then whatever is unique; 25 characters."""
    return f"{paid_at.astimezone(clock.BANGKOK):%Y%m%d}{ids.random_text(17)}"


def _entries(payment: SandboxPayment, transfer: Transfer) -> list[SandboxEntry]:
    return [
        SandboxEntry(
            payment=payment,
            type=kind,
            at=transfer.paid_at + number * NEXT_ENTRY,
            booked_at=transfer.booked_at + number * NEXT_ENTRY,
        )
        for number, kind in enumerate(transfer.entries)
    ]


def _calls(entries: list[SandboxEntry], transfer: Transfer, now: datetime) -> list[SandboxCall]:
    return [
        SandboxCall(
            payment=entry.payment,
            body=shapes.notice(entry),
            due_at=transfer.report_at + number * NEXT_ENTRY + telling * SPACING,
            created_at=now,
        )
        for number, entry in enumerate(entries)
        for telling in range(transfer.tellings)
    ]
