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
from sandbox.models import SandboxCallback, SandboxEntry, SandboxPayment
from sandbox.scenarios import SimulatedTransfer

YEAR = timedelta(days=366)
# Between two calls about one payment: a bank tells in order, and a demonstration is not kept waiting.
CALLBACK_INTERVAL = timedelta(seconds=0.5)
# Between the entries about one payment: long enough that the first is known when the second comes.
ENTRY_INTERVAL = timedelta(seconds=3)
# Name, bank code, account. The last digits stay clear of those that choose an outcome of outgoing money.
PAYERS = (
    ("สมชาย ใจดี", "014", "4051234567"),
    ("สมหญิง รักไทย", "004", "0382345678"),
    ("MALEE SRISUK", "002", "1963456789"),
)
# How often the page lets one code be paid: each time after the first is an exception for staff.
MAX_PAYMENTS_WITHOUT_KEY = 10
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PaymentPlan:
    """An order that passed every check and only has to be written down."""

    qr_data: str
    scenario: str
    transfers: tuple[SimulatedTransfer, ...]


def parse_qr(qr_data: str) -> Payload:
    """The bill payment in `qr_data`. Raises InvalidQrData."""
    try:
        payload = thaiqr.parse(qr_data)
    except thaiqr.BadPayload as error:
        raise InvalidQrData(f"Not a Thai QR payment: {error}.", param="qr_data") from None
    if payload.kind != thaiqr.Kind.BILL_PAYMENT or not payload.amount or _CONTROL.search(qr_data):
        raise InvalidQrData(param="qr_data")
    return payload


def parse_known_qr(qr_data: str) -> Payload:
    """`parse_qr` for a payer without a key: only codes of test merchants, and each only so often.

    The bank knows them by the check characters in reference 1. Raises InvalidQrData.
    """
    payload = parse_qr(qr_data)
    biller_id, reference1 = payload.biller_id or "", payload.reference1 or ""
    if not references.is_checked(biller_id, reference1, settings.SANDBOX_BANK_SECRET):
        raise InvalidQrData("This bank only pays codes of test merchants.", param="qr_data")
    paid = SandboxPayment.objects.filter(biller_id=biller_id, reference1=reference1)
    if paid.count() >= MAX_PAYMENTS_WITHOUT_KEY:
        message = (
            f"This code was paid {MAX_PAYMENTS_WITHOUT_KEY} times. To pay it more often, use a test key."
        )
        raise InvalidQrData(message, param="qr_data")
    return payload


def plan(
    *,
    qr_data: str,
    scenario: str,
    now: datetime,
    paid_at: datetime | None = None,
    report_at: datetime | None = None,
) -> PaymentPlan:
    """Judge an order to pay; nothing is stored.

    Raises InvalidQrData, InvalidScenario, InvalidPaidAt, InvalidReportAt.
    """
    if paid_at and abs(paid_at - now) > YEAR:
        raise InvalidPaidAt(param="paid_at")
    if report_at and abs(report_at - now) > YEAR:
        raise InvalidReportAt(param="report_at")
    payload, scenario_ = parse_qr(qr_data), scenarios.find(scenario)
    data = _transfer(
        payload,
        paid_at=paid_at or now + scenario_.pays_after,
        report_at=report_at or now + scenario_.reports_after,
    )
    return PaymentPlan(qr_data, scenario, tuple(scenario_.apply(data)))


def execute(order: PaymentPlan, *, now: datetime) -> SandboxPayment:
    """Store the payments of the order, what the books say and when it is told; returns the first payment."""
    payments = [(_payment(order, transfer, now), transfer) for transfer in order.transfers]
    entries = [(_entries(payment, transfer), transfer) for payment, transfer in payments]
    callbacks = [callback for booked, transfer in entries for callback in _callbacks(booked, transfer, now)]
    with transaction.atomic():
        SandboxPayment.objects.bulk_create([payment for payment, _ in payments])
        SandboxEntry.objects.bulk_create([entry for booked, _ in entries for entry in booked])
        SandboxCallback.objects.bulk_create(callbacks)
    return payments[0][0]


def paid_together(payment: SandboxPayment) -> list[SandboxPayment]:
    """The other payments of the same order."""
    same = SandboxPayment.objects.filter(biller_id=payment.biller_id, reference1=payment.reference1)
    return list(same.filter(created_at=payment.created_at).exclude(pk=payment.pk))


def _transfer(payload: Payload, *, paid_at: datetime, report_at: datetime) -> SimulatedTransfer:
    return SimulatedTransfer(
        biller_id=payload.biller_id or "",
        reference1=payload.reference1 or "",
        reference2=payload.reference2 or "",
        reference3=payload.reference3 or "",
        amount=payload.amount or 0,
        paid_at=paid_at,
        report_at=report_at,
    )


def _payment(order: PaymentPlan, transfer: SimulatedTransfer, now: datetime) -> SandboxPayment:
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


def _entries(payment: SandboxPayment, transfer: SimulatedTransfer) -> list[SandboxEntry]:
    return [
        SandboxEntry(
            payment=payment,
            type=kind,
            occurred_at=transfer.paid_at + number * ENTRY_INTERVAL,
            booked_at=transfer.booked_at + number * ENTRY_INTERVAL,
        )
        for number, kind in enumerate(transfer.entries)
    ]


def _callbacks(
    entries: list[SandboxEntry], transfer: SimulatedTransfer, now: datetime
) -> list[SandboxCallback]:
    return [
        SandboxCallback(
            payment=entry.payment,
            body=shapes.notification_body(entry),
            due_at=transfer.report_at + number * ENTRY_INTERVAL + repetition * CALLBACK_INTERVAL,
            created_at=now,
        )
        for number, entry in enumerate(entries)
        for repetition in range(transfer.callback_count)
    ]
