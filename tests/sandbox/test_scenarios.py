import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from banks import ReportedTransaction, get
from core import clock
from core.thai.slips import Slip, slip_payload
from sandbox.models import SandboxCallback, SandboxEntry, SandboxEntryType, SandboxPayment
from sandbox.openapi import create
from sandbox.scenarios import SCENARIOS
from tests.sandbox.conftest import BILLER, REFERENCE, pay

pytestmark = pytest.mark.django_db


def callback_bodies(payment: SandboxPayment) -> list[dict[str, Any]]:
    return [json.loads(callback.body) for callback in payment.callbacks.order_by("due_at")]


def test_paid_scenario_sends_one_credit() -> None:
    paid_at = datetime(2026, 11, 21, 3, 4, 5, 123_000, UTC)
    payment = pay(paid_at=paid_at, now=paid_at)
    (notification,) = callback_bodies(payment)
    assert notification["amount"] == "1500.00"
    assert notification["paid_at"] == "2026-11-21T10:04:05.123+07:00"
    assert notification["transaction_id"] == payment.id


def test_adapter_parses_sandbox_callback() -> None:
    payment = pay()
    notification = get("sandbox").parse_notification(payment.callbacks.get().body.encode())
    assert isinstance(notification, ReportedTransaction)
    assert (notification.kind, notification.amount) == ("credit", 150_000)
    assert notification.paid_at == payment.paid_at
    assert (notification.biller_id, notification.reference1) == (BILLER, REFERENCE)
    assert (notification.reference2, notification.reference3) == ("SHOP7", "T1")
    assert notification.payer_name == payment.payer_name
    assert notification.payer_account == payment.payer_account


NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
AFTER_EXPIRY = timedelta(days=1, minutes=1)
AT_ONCE, SOON = timedelta(0), timedelta(seconds=3)
# Of every callback: type, bank's time and due time (both from now), and baht.
EXPECTED_CALLBACKS: dict[str, list[tuple[str, timedelta, timedelta, str]]] = {
    "paid": [("credit", AT_ONCE, AT_ONCE, "1500.00")],
    "declined": [("decline", AT_ONCE, AT_ONCE, "1500.00")],
    "late": [("credit", AFTER_EXPIRY, AT_ONCE, "1500.00")],
    "reported_late": [("credit", AT_ONCE, AFTER_EXPIRY, "1500.00")],
    "twice": [("credit", AT_ONCE, AT_ONCE, "1500.00")] * 2,
    "over": [("credit", AT_ONCE, AT_ONCE, "3000.00")],
    "under": [("credit", AT_ONCE, AT_ONCE, "750.00")],
    "callback_lost": [],
    "callback_repeated": [
        ("credit", AT_ONCE, number * timedelta(seconds=0.5), "1500.00") for number in range(3)
    ],
    "payer_unknown": [("credit", AT_ONCE, AT_ONCE, "1500.00")],
    "unknown_reference": [("credit", AT_ONCE, AT_ONCE, "1500.00")],
    "reversed": [("credit", AT_ONCE, AT_ONCE, "1500.00"), ("reversal", SOON, SOON, "1500.00")],
}


def test_every_sandbox_scenario_is_tested() -> None:
    assert list(SCENARIOS) == list(EXPECTED_CALLBACKS)


@pytest.mark.parametrize("scenario", EXPECTED_CALLBACKS)
def test_scenario_sends_expected_callbacks(scenario: str) -> None:
    pay(scenario, now=NOW)
    calls = [
        (json.loads(call.body), call.due_at - NOW)
        for call in SandboxCallback.objects.order_by("due_at", "id")
    ]
    assert [
        (body["type"], datetime.fromisoformat(body["paid_at"]) - NOW, due, body["amount"])
        for body, due in calls
    ] == EXPECTED_CALLBACKS[scenario]


@pytest.mark.parametrize("scenario", [name for name in EXPECTED_CALLBACKS if name != "callback_lost"])
def test_every_sandbox_callback_has_an_inquiry_entry(scenario: str) -> None:
    pay(scenario)
    notifications = {
        get("sandbox").parse_notification(call.body.encode()) for call in SandboxCallback.objects.all()
    }
    entries = SandboxEntry.objects.select_related("payment")
    assert {
        (notification.bank_reference, notification.kind, notification.paid_at)
        for notification in notifications
        if isinstance(notification, ReportedTransaction)
    } == {(entry.payment.id, entry.type, entry.occurred_at) for entry in entries}


def test_sandbox_payment_without_callback_has_an_inquiry_entry() -> None:
    payment = pay("callback_lost")
    entry = payment.entries.get()
    assert entry.type == SandboxEntryType.CREDIT
    assert entry.occurred_at == entry.booked_at == payment.paid_at


@pytest.mark.parametrize(
    ("scenario", "paid", "reported", "booked"),
    [
        ("paid", 0, 0, [0]),
        ("paid", 10, 0, [0]),
        ("paid", 0, 10, [0]),
        ("callback_lost", 10, 0, [10]),
        ("reversed", 0, 0, [0, 3]),
        ("reversed", 10, 0, [0, 3]),
    ],
)
def test_sandbox_entries_are_booked_at_paid_at_or_report_at(
    scenario: str, paid: int, reported: int, booked: list[int]
) -> None:
    times = {"paid_at": NOW + timedelta(seconds=paid), "report_at": NOW + timedelta(seconds=reported)}
    payment = pay(scenario, now=NOW, **times)
    shown = [entry.booked_at - NOW for entry in payment.entries.order_by("id")]
    assert shown == [timedelta(seconds=seconds) for seconds in booked]


def test_two_transfers_have_two_transaction_ids_and_two_slips() -> None:
    pay("twice")
    first, second = SandboxPayment.objects.all()
    assert first.id != second.id
    assert first.slip_reference != second.slip_reference


def test_unknown_payer_is_in_no_report_of_the_bank() -> None:
    payment = pay("payer_unknown")
    (body,) = callback_bodies(payment)
    reported = get("sandbox").parse_notification(json.dumps(body).encode())
    assert isinstance(reported, ReportedTransaction)
    assert (reported.payer_name, reported.payer_account) == ("", "")
    assert reported.slip_reference == payment.slip_reference


def test_underpaid_scenario_rounds_half_the_amount_down() -> None:
    pay("under", amount=101)
    assert SandboxPayment.objects.get().amount == 50


def test_reversal_scenario_has_the_data_of_the_credit() -> None:
    credit, reversal = callback_bodies(pay("reversed"))
    differing = {name for name in credit if credit[name] != reversal[name]}
    assert differing == {"type", "paid_at"}


def test_paid_payment_has_slip_reference_of_payer_bank() -> None:
    paid_at = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
    payment = pay(now=paid_at)
    (notification,) = callback_bodies(payment)
    assert notification["slip_reference"] == payment.slip_reference
    assert payment.slip_reference[:8] == "20261121"
    assert len(payment.slip_reference) == 25
    assert slip_payload(Slip(payment.payer_bank_code, payment.slip_reference))


def test_declined_callback_has_no_slip_reference() -> None:
    (notification,) = callback_bodies(pay("declined"))
    assert notification["slip_reference"] == ""


def test_callback_repeated_sends_the_same_body_three_times() -> None:
    first, second, third = callback_bodies(pay("callback_repeated"))
    assert first == second == third


def test_unknown_reference_pays_with_another_reference_each_time() -> None:
    notifications = [callback_bodies(pay("unknown_reference"))[0] for _ in range(2)]
    references = {notification["reference1"] for notification in notifications}
    assert len(references | {REFERENCE}) == 3


def test_callback_is_due_at_report_at() -> None:
    report_at = clock.now() + timedelta(minutes=16)
    payment = pay(report_at=report_at)
    assert payment.paid_at < report_at
    assert SandboxCallback.objects.get(payment=payment).due_at == report_at


def test_reference_names_every_scenario() -> None:
    described = create.description
    assert all(f"`{name}` ({each.label_en.lower()})" in described for name, each in SCENARIOS.items())
