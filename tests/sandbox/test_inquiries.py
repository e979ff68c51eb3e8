"""The sandbox bank's door for questions, as the service knocks there."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine

from core import clock
from sandbox import books, services
from sandbox.models import SandboxCall, SandboxPayment
from tests.conftest import new_client
from tests.sandbox.conftest import payload
from tests.sandbox.test_orders import error_of, sign

pytestmark = pytest.mark.django_db
DOOR = "/sandbox/bank/v1/transactions"
NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SLIPS = "/sandbox/bank/v1/slips"
CODE = {"biller_id": "010555000000001", "reference1": "ABCDEFGHJ01234567890"}
WINDOW = {"since": "2026-11-20T00:00:00Z", "until": "2026-11-23T00:00:00+07:00"}


@pytest.fixture(autouse=True)
def watch() -> Any:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def get(path: str, signature: str | None = None) -> Any:
    return new_client().get(path, headers={"Sandbox-Bank-Signature": signature or sign("GET", path, b"")})


def ask(**changes: str) -> Any:
    return get(f"{DOOR}?{urlencode(CODE | WINDOW | changes)}")


def found(**changes: str) -> list[dict[str, str]]:
    answer = ask(**changes)
    assert answer.status_code == 200, answer.content
    transactions: list[dict[str, str]] = answer.json()["transactions"]
    return transactions


def pay(scenario: str = "paid", qr_data: str = "", **times: Any) -> SandboxPayment:
    now = clock.now()
    order = services.order(qr_data=qr_data or payload(), scenario=scenario, now=now, **times)
    return services.carry_out(order, now=now)


def test_nothing_was_paid() -> None:
    assert found() == []


def test_an_inquiry_finds_what_a_callback_tells() -> None:
    payment = pay()
    assert found() == [
        {
            "transaction_id": payment.id,
            "type": "credit",
            "biller_id": "010555000000001",
            "reference1": "ABCDEFGHJ01234567890",
            "reference2": "SHOP7",
            "reference3": "T1",
            "amount": "1500.00",
            "currency": "THB",
            "paid_at": "2026-11-21T10:00:00.000+07:00",
            "payer_name": payment.payer_name,
            "payer_bank_code": payment.payer_bank_code,
            "payer_account": payment.payer_account,
            "slip_reference": payment.slip_reference,
        }
    ]


@pytest.mark.parametrize("scenario", ["callback_lost", "reported_late"])
def test_what_was_not_told_is_found_as_soon_as_it_is_paid(scenario: str) -> None:
    payment = pay(scenario)
    assert not SandboxCall.objects.filter(due_at__lte=NOW).exists()
    assert [entry["transaction_id"] for entry in found()] == [payment.id]


def test_what_will_be_paid_is_found_when_it_is(watch: Any) -> None:
    pay("callback_lost", paid_at=NOW + timedelta(minutes=5))
    watch.shift(timedelta(minutes=4))
    assert found() == []
    watch.shift(timedelta(minutes=1))
    assert len(found()) == 1


@pytest.mark.parametrize(
    ("since", "until", "number"),
    [
        ("2026-11-21T02:00:00Z", "2026-11-21T02:59:59.999Z", 0),
        ("2026-11-21T02:00:00Z", "2026-11-21T03:05:00Z", 1),
        ("2026-11-22T03:01:00Z", "2026-11-22T04:00:00Z", 1),
        ("2026-11-22T03:01:00.001Z", "2026-11-22T04:00:00Z", 0),
    ],
)
def test_what_was_told_before_its_time_is_not_denied(since: str, until: str, number: int) -> None:
    """Told at 03:00, of a payment of 03:01 on the day after."""
    pay("late")
    assert [each["paid_at"] for each in found(since=since, until=until)] == (
        ["2026-11-22T10:01:00.000+07:00"] * number
    )


def test_a_reversal_is_found_once_it_happened(watch: Any) -> None:
    pay("reversed")
    seen = []
    for _ in range(2):
        seen.append([entry["type"] for entry in found()])
        watch.shift(timedelta(seconds=3))
    assert seen == [["credit"], ["credit", "reversal"]]


def test_a_decline_is_found_as_such() -> None:
    pay("declined")
    assert [entry["type"] for entry in found()] == ["decline"]


def test_both_transfers_are_found() -> None:
    pay("twice")
    assert len({entry["transaction_id"] for entry in found()}) == 2


@pytest.mark.parametrize("name", ["biller_id", "reference1"])
def test_another_code_was_not_paid(name: str) -> None:
    pay()
    assert found(**{name: CODE[name][:-1] + "9"}) == []


@pytest.mark.parametrize(
    ("since", "until", "number"),
    [
        ("2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z", 1),
        ("2026-11-21T10:00:00.000+07:00", "2026-11-21T10:00:01+07:00", 1),
        ("2026-11-21T03:00:00.001Z", "2026-11-22T03:00:00Z", 0),
        ("2026-11-20T03:00:00Z", "2026-11-21T02:59:59.999Z", 0),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", 1),
    ],
)
def test_both_ends_of_the_window_belong_to_it(since: str, until: str, number: int) -> None:
    pay()
    assert len(found(since=since, until=until)) == number


def test_the_oldest_hundred_are_told() -> None:
    for number in range(books.MOST_FOUND + 1):
        pay(paid_at=NOW - timedelta(minutes=number))
    told = found()
    assert len(told) == books.MOST_FOUND
    assert told[0]["paid_at"] < told[-1]["paid_at"] < "2026-11-21T10:00"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("biller_id", ""),
        ("biller_id", "12345"),
        ("biller_id", "010555000000001\n"),
        ("biller_id", "๐" * 15),
        ("reference1", ""),
        ("reference1", "A" * 36),
        ("reference1", "A\x00"),
        ("reference1", "ก"),
        ("since", ""),
        ("since", "2026-11-21"),
        ("since", "2026-11-21T10:00:00"),
        ("since", "0001-01-01T00:00:00+07:00"),
        ("since", "2026-11-24T00:00:00Z"),
        ("until", "tomorrow"),
        ("until", "9999-12-31T23:59:59-07:00"),
    ],
)
def test_a_malformed_question_is_refused_by_its_name(name: str, value: str) -> None:
    assert error_of(ask(**{name: value})) == (400, "invalid_parameters", name)


@pytest.mark.parametrize("name", [*CODE, *WINDOW])
def test_a_question_names_everything_once(name: str) -> None:
    told = CODE | WINDOW
    less = urlencode({field: value for field, value in told.items() if field != name})
    for query in (less, f"{urlencode(told)}&{urlencode({name: told[name]})}"):
        assert error_of(get(f"{DOOR}?{query}")) == (400, "invalid_parameters", name)


def of_slip(payment: SandboxPayment, **changes: str) -> Any:
    named = {"sending_bank": payment.payer_bank_code, "reference": payment.slip_reference}
    return get(f"{SLIPS}?{urlencode(named | changes)}")


def test_a_slip_finds_the_transfer_that_it_names() -> None:
    payment, other = pay("callback_lost"), pay()
    told = of_slip(payment).json()["transactions"]
    assert [(each["transaction_id"], each["type"]) for each in told] == [(payment.id, "credit")]
    assert of_slip(payment, sending_bank="999").json() == {"transactions": []}
    assert other.slip_reference != payment.slip_reference


def test_a_slip_of_what_is_not_paid_yet_finds_nothing(watch: Any) -> None:
    payment = pay("callback_lost", paid_at=NOW + timedelta(minutes=5))
    assert of_slip(payment).json() == {"transactions": []}
    watch.shift(timedelta(minutes=5))
    assert len(of_slip(payment).json()["transactions"]) == 1


def test_what_was_declined_has_no_slip() -> None:
    assert of_slip(pay("declined")).json() == {"transactions": []}


@pytest.mark.parametrize(
    ("name", "value"),
    [("sending_bank", "14"), ("reference", ""), ("reference", "A" * 26), ("reference", "ก")],
)
def test_a_malformed_slip_is_refused_by_its_name(name: str, value: str) -> None:
    assert error_of(of_slip(pay(), **{name: value})) == (400, "invalid_parameters", name)


WRONG: dict[str, Callable[[str], str]] = {
    "none": lambda path: " ",
    "another question": lambda path: sign("GET", path.replace("ABC", "XYZ"), b""),
    "another secret": lambda path: sign("GET", path, b"", secret="guessed"),
    "too old": lambda path: sign("GET", path, b"", seconds=-301),
}


@pytest.mark.parametrize("door", [DOOR, SLIPS])
@pytest.mark.parametrize("why", WRONG)
def test_who_does_not_know_the_secret_learns_nothing(why: str, door: str) -> None:
    path = f"{door}?{urlencode(CODE | WINDOW)}"
    assert error_of(get(path, WRONG[why](path))) == (401, "invalid_order_signature", None)


def test_a_deployment_without_the_bank_has_no_such_door(settings: Any) -> None:
    path = f"{DOOR}?{urlencode(CODE | WINDOW)}"
    signature = sign("GET", path, b"")
    settings.SANDBOX_BANK_SECRET = ""
    assert error_of(get(path, signature)) == (404, "not_found", None)
