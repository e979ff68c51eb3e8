import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from banks import ReportedTransaction, get
from core import clock
from core.slips import Slip, slip_payload
from sandbox import services
from sandbox.models import SandboxCallback, SandboxEntry, SandboxEntryType, SandboxPayment
from sandbox.scenarios import SCENARIOS
from tests.sandbox.conftest import payload

pytestmark = pytest.mark.django_db
Paying = Callable[..., dict[str, Any]]


def carried_out(order: dict[str, Any]) -> SandboxPayment:
    now = clock.now()
    fields: dict[str, Any] = {"scenario": "paid", "now": now}
    return services.execute(services.plan(**fields | order), now=now)


def told(payment: SandboxPayment) -> list[dict[str, Any]]:
    return [json.loads(call.body) for call in payment.callbacks.order_by("due_at")]


def test_paid_scenario_sends_one_credit(payment_order: Paying) -> None:
    paid_at = datetime(2026, 11, 21, 3, 4, 5, 123_000, UTC)
    payment = carried_out(payment_order(paid_at=paid_at, now=paid_at))
    (notification,) = told(payment)
    assert notification["amount"] == "1500.00"
    assert notification["paid_at"] == "2026-11-21T10:04:05.123+07:00"
    assert notification["transaction_id"] == payment.id


def test_adapter_parses_sandbox_callback(payment_order: Paying) -> None:
    payment = carried_out(payment_order())
    notification = get("sandbox").parse_notification(payment.callbacks.get().body.encode())
    assert isinstance(notification, ReportedTransaction)
    assert (notification.kind, notification.amount, notification.paid_at) == (
        "credit",
        150_000,
        payment.paid_at,
    )
    assert (notification.biller_id, notification.reference1) == ("010555000000001", "ABCDEFGHJ01234567890")
    assert (notification.reference2, notification.reference3) == ("SHOP7", "T1")
    assert (notification.payer_name, notification.payer_account) == (
        payment.payer_name,
        payment.payer_account,
    )


NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
PAST_ANY_CODE = timedelta(days=1, minutes=1)
AT_ONCE, SOON = timedelta(0), timedelta(seconds=3)
# Type, bank's time and telling's time of every callback, both from now on, and the baht it says.
TOLD: dict[str, list[tuple[str, timedelta, timedelta, str]]] = {
    "paid": [("credit", AT_ONCE, AT_ONCE, "1500.00")],
    "declined": [("decline", AT_ONCE, AT_ONCE, "1500.00")],
    "late": [("credit", PAST_ANY_CODE, AT_ONCE, "1500.00")],
    "reported_late": [("credit", AT_ONCE, PAST_ANY_CODE, "1500.00")],
    "twice": [("credit", AT_ONCE, AT_ONCE, "1500.00")] * 2,
    "over": [("credit", AT_ONCE, AT_ONCE, "3000.00")],
    "under": [("credit", AT_ONCE, AT_ONCE, "750.00")],
    "callback_lost": [],
    "callback_repeated": [
        ("credit", AT_ONCE, number * timedelta(seconds=0.5), "1500.00") for number in range(3)
    ],
    "unknown_reference": [("credit", AT_ONCE, AT_ONCE, "1500.00")],
    "reversed": [("credit", AT_ONCE, AT_ONCE, "1500.00"), ("reversal", SOON, SOON, "1500.00")],
}


def test_every_scenario_is_in_the_table() -> None:
    assert list(SCENARIOS) == list(TOLD)


@pytest.mark.parametrize("scenario", TOLD)
def test_scenario_sends_expected_callbacks(payment_order: Paying, scenario: str) -> None:
    carried_out(payment_order(scenario=scenario, now=NOW))
    calls = [
        (json.loads(call.body), call.due_at - NOW)
        for call in SandboxCallback.objects.order_by("due_at", "id")
    ]
    assert [
        (body["type"], datetime.fromisoformat(body["paid_at"]) - NOW, due, body["amount"])
        for body, due in calls
    ] == TOLD[scenario]


@pytest.mark.parametrize("scenario", [name for name in TOLD if name != "callback_lost"])
def test_each_callback_has_an_entry(payment_order: Paying, scenario: str) -> None:
    carried_out(payment_order(scenario=scenario))
    notifications = {
        get("sandbox").parse_notification(call.body.encode()) for call in SandboxCallback.objects.all()
    }
    entries = SandboxEntry.objects.select_related("payment")
    assert {
        (notification.bank_transaction_id, notification.kind, notification.paid_at)
        for notification in notifications
        if isinstance(notification, ReportedTransaction)
    } == {(entry.payment.id, entry.type, entry.occurred_at) for entry in entries}


def test_payment_without_callback_has_an_entry(payment_order: Paying) -> None:
    payment = carried_out(payment_order(scenario="callback_lost"))
    entry = payment.entries.get()
    assert (entry.type, entry.occurred_at, entry.booked_at) == (
        SandboxEntryType.CREDIT,
        payment.paid_at,
        payment.paid_at,
    )


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
def test_entries_are_booked_when_paid_or_reported(
    payment_order: Paying, scenario: str, paid: int, reported: int, booked: list[int]
) -> None:
    times = {"paid_at": NOW + timedelta(seconds=paid), "report_at": NOW + timedelta(seconds=reported)}
    payment = carried_out(payment_order(scenario=scenario, now=NOW, **times))
    shown = [entry.booked_at - NOW for entry in payment.entries.order_by("id")]
    assert shown == [timedelta(seconds=seconds) for seconds in booked]


def test_two_transfers_have_two_transaction_ids_and_two_slips(payment_order: Paying) -> None:
    carried_out(payment_order(scenario="twice"))
    first, second = SandboxPayment.objects.all()
    assert first.id != second.id
    assert first.slip_reference != second.slip_reference


def test_half_of_an_amount_is_rounded_down(payment_order: Paying) -> None:
    carried_out(payment_order(scenario="under", qr_data=payload(amount=101)))
    assert SandboxPayment.objects.get().amount == 50


def test_a_reversal_is_of_the_same_transaction(payment_order: Paying) -> None:
    credit, reversal = told(carried_out(payment_order(scenario="reversed")))
    differing = {name for name in credit if credit[name] != reversal[name]}
    assert differing == {"type", "paid_at"}


def test_paid_payment_has_slip_reference_of_payer_bank(payment_order: Paying) -> None:
    paid_at = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
    payment = carried_out(payment_order(now=paid_at))
    (notification,) = told(payment)
    assert notification["slip_reference"] == payment.slip_reference
    assert payment.slip_reference[:8] == "20261121"
    assert len(payment.slip_reference) == 25
    assert slip_payload(Slip(payment.payer_bank_code, payment.slip_reference))


def test_declined_callback_has_no_slip_reference(payment_order: Paying) -> None:
    (notification,) = told(carried_out(payment_order(scenario="declined")))
    assert notification["slip_reference"] == ""


def test_callback_repeated_tells_the_same_three_times(payment_order: Paying) -> None:
    first, second, third = told(carried_out(payment_order(scenario="callback_repeated")))
    assert first == second == third


def test_unknown_reference_pays_with_another_reference_each_time(payment_order: Paying) -> None:
    notifications = [told(carried_out(payment_order(scenario="unknown_reference")))[0] for _ in range(2)]
    references = {notification["reference1"] for notification in notifications}
    assert len(references | {"ABCDEFGHJ01234567890"}) == 3


def test_a_report_may_come_later_than_the_payment(payment_order: Paying) -> None:
    report_at = clock.now() + timedelta(minutes=16)
    payment = carried_out(payment_order(report_at=report_at))
    assert payment.paid_at < report_at
    assert SandboxCallback.objects.get(payment=payment).due_at == report_at
