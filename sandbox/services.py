"""Payments of QR codes at the sandbox bank: read the code, apply the scenario, store what happens."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.db import transaction

from core import clock, ids, money
from core.database import rows
from core.http import received
from core.thai import references, thaiqr, tlv
from core.thai.thaiqr import Payload
from sandbox import scenarios
from sandbox.errors import InvalidPaidAt, InvalidReportAt, NoPaymentCode, QrCodePaidTooOften, UnknownQrCode
from sandbox.models import SandboxCallback, SandboxEntry, SandboxEntryType, SandboxPayment
from sandbox.scenarios import Scenario

YEAR = timedelta(days=366)
TOO_FAR = "is more than a year from now"
# Time between two callbacks of one entry, and between two entries of one payment. The service has processed
# the first before the second arrives, and a demonstration stays short.
CALLBACK_INTERVAL, ENTRY_INTERVAL = timedelta(seconds=0.5), timedelta(seconds=3)
# Name, bank code, account. The last four digits must not select a scenario of outgoing money.
PAYERS = (
    ("สมชาย ใจดี", "014", "4051234567"),
    ("สมหญิง รักไทย", "004", "0382345678"),
    ("MALEE SRISUK", "002", "1963456789"),
)
# Payments of one code on the page. Each after the first becomes an exception for staff.
MAX_PAYMENTS_WITHOUT_KEY = 10
LOCK_CODE = "SELECT pg_advisory_xact_lock(hashtext(%s), hashtext(%s))"
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PaymentPlan:
    """A valid order to pay, which is not stored yet."""

    qr_data: str
    payload: Payload
    scenario_name: str
    paid_at: datetime
    report_at: datetime

    @property
    def scenario(self) -> Scenario:
        return scenarios.SCENARIOS[self.scenario_name]


def parse_qr(qr_data: str) -> Payload:
    """The bill payment in `qr_data`. Raises InvalidQrData."""
    shown = received.describe(qr_data, is_shown=False)
    try:
        payload = thaiqr.parse(qr_data)
    except tlv.BadPayload as error:
        raise NoPaymentCode(
            param="qr_data", detail=f"is not a Thai QR bill payment: {error}", received=shown
        ) from None
    if not payload.amount or _CONTROL.search(qr_data):
        raise NoPaymentCode(param="qr_data", detail="is not a bill payment with an amount", received=shown)
    return payload


def parse_known_qr(qr_data: str) -> Payload:
    """`parse_qr` for a payer without an API key: only codes of test merchants, up to the limit.

    The check characters in reference 1 show that the service made the code. Raises InvalidQrData.
    """
    payload = parse_qr(qr_data)
    biller_id, reference1 = payload.biller_id, payload.reference1
    if not references.is_checked(biller_id, reference1, settings.SANDBOX_BANK_SECRET):
        raise UnknownQrCode(param="qr_data")
    _check_limit(biller_id, reference1, 1)
    return payload


def plan(
    *,
    qr_data: str,
    scenario: str,
    now: datetime,
    paid_at: datetime | None = None,
    report_at: datetime | None = None,
) -> PaymentPlan:
    """Check an order to pay. Raises InvalidQrData, InvalidScenario, InvalidPaidAt, InvalidReportAt."""
    if paid_at and abs(paid_at - now) > YEAR:
        raise InvalidPaidAt(param="paid_at", detail=TOO_FAR, received=clock.iso(paid_at))
    if report_at and abs(report_at - now) > YEAR:
        raise InvalidReportAt(param="report_at", detail=TOO_FAR, received=clock.iso(report_at))
    payload, found = parse_qr(qr_data), scenarios.find(scenario)
    paid_at, report_at = paid_at or now + found.pays_after, report_at or now + found.reports_after
    return PaymentPlan(qr_data, payload, scenario, paid_at, report_at)


@transaction.atomic
def execute(order: PaymentPlan, *, now: datetime) -> SandboxPayment:
    """Store the payments of the order with their entries and callbacks. Returns the first payment."""
    scenario, booked_at = order.scenario, order.paid_at
    if scenario.callbacks:  # inquiries find a payment no later than a callback reports it
        booked_at = min(order.paid_at, order.report_at)
    payments = [_payment(order, now) for _ in range(scenario.transfers)]
    entries, callbacks = [], []
    for payment in payments:
        for number, type_ in enumerate(scenario.entries):
            delay = number * ENTRY_INTERVAL
            entry = SandboxEntry(
                payment=payment, type=type_, occurred_at=order.paid_at + delay, booked_at=booked_at + delay
            )
            entries.append(entry)
            callbacks += [
                SandboxCallback(
                    payment=payment,
                    body=orjson.dumps(entry_object(entry)).decode(),
                    due_at=order.report_at + delay + repetition * CALLBACK_INTERVAL,
                    created_at=now,
                )
                for repetition in range(scenario.callbacks)
            ]
    SandboxPayment.objects.bulk_create(payments)
    SandboxEntry.objects.bulk_create(entries)
    SandboxCallback.objects.bulk_create(callbacks)
    return payments[0]


@transaction.atomic
def execute_without_key(order: PaymentPlan, *, now: datetime) -> SandboxPayment:
    """`execute` for a payer without an API key. Raises InvalidQrData beyond MAX_PAYMENTS_WITHOUT_KEY.

    Concurrent orders of one code wait for each other, so that each counts the payments of the others.
    """
    code = order.payload.biller_id, order.payload.reference1
    rows.run(LOCK_CODE, code)
    _check_limit(*code, order.scenario.transfers)
    return execute(order, now=now)


def paid_together(payment: SandboxPayment) -> list[SandboxPayment]:
    """The other payments of the same order."""
    same = SandboxPayment.objects.filter(biller_id=payment.biller_id, reference1=payment.reference1)
    return list(same.filter(created_at=payment.created_at).exclude(pk=payment.pk))


def entry_object(entry: SandboxEntry) -> dict[str, str]:
    """An entry as callbacks and answers to inquiries show it."""
    payment = entry.payment
    return {
        "transaction_id": payment.id,
        "type": entry.type,
        "biller_id": payment.biller_id,
        "reference1": payment.reference1,
        "reference2": payment.reference2,
        "reference3": payment.reference3,
        "amount": money.baht(payment.amount),
        "currency": money.CURRENCY,
        "paid_at": entry.occurred_at.astimezone(clock.BANGKOK).isoformat(timespec="milliseconds"),
        "payer_name": payment.payer_name,
        "payer_bank_code": payment.payer_bank_code,
        "payer_account": payment.payer_account,
        "slip_reference": "" if entry.type == SandboxEntryType.DECLINE else payment.slip_reference,
    }


def _check_limit(biller_id: str, reference1: str, added: int) -> None:
    paid = SandboxPayment.objects.filter(biller_id=biller_id, reference1=reference1).count()
    if paid + added > MAX_PAYMENTS_WITHOUT_KEY:
        raise QrCodePaidTooOften(param="qr_data", limit=MAX_PAYMENTS_WITHOUT_KEY)


def _payment(order: PaymentPlan, now: datetime) -> SandboxPayment:
    payload, scenario = order.payload, order.scenario
    name, bank_code, account = secrets.choice(PAYERS)
    if not scenario.names_payer:
        name = account = ""
    return SandboxPayment(
        id=ids.new("sbp_", now),
        qr_data=order.qr_data,
        scenario=order.scenario_name,
        biller_id=payload.biller_id,
        reference1=references.new() if scenario.has_unknown_reference else payload.reference1,
        reference2=payload.reference2,
        reference3=payload.reference3,
        amount=max(int((payload.amount or 0) * scenario.share), 1),
        payer_name=name,
        payer_bank_code=bank_code,
        payer_account=account,
        # As Thai banks make it, in 25 characters: the day in Bangkok, then a unique text.
        slip_reference=f"{order.paid_at.astimezone(clock.BANGKOK):%Y%m%d}{ids.random_text(17)}",
        paid_at=order.paid_at,
        created_at=now,
    )
