"""A bank that takes its own payments back: what we ordered is not taken twice when it tells of it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from payments.models import Payment
from receipts.models import Receipt
from refunds.tasks import run_due
from tests.banks import bbl_stand_in
from tests.banks.bbl_stand_in import INQUIRY, VOID, BblStandIn, opened, said
from tests.banks.test_door import Linked, linked, pushed
from tests.merchants.cast import BBL
from tests.receiver import Reply
from tests.transfers.cast import pass_time
from webhooks.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
AFTERNOON = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LATE = datetime(2026, 11, 21, 16, 30, tzinfo=UTC)  # 23:30 in Bangkok


@pytest.fixture(autouse=True)
def afternoon() -> Iterator[Any]:
    with time_machine.travel(AFTERNOON, tick=True) as machine:
        yield machine


@pytest.fixture
def bank() -> Iterator[BblStandIn]:
    with opened() as stand_in:
        yield stand_in


@pytest.fixture
def live(db: None, bank: BblStandIn) -> Linked:
    return linked(BBL, credentials=bbl_stand_in.credentials(bank.secret, bank.receiver.base_url))


def paid(live: Linked, bank: BblStandIn) -> tuple[dict[str, Any], bytes]:
    """A code that was paid at the bank, which knows of it, and the push that said so."""
    code = live.shop.qr_code()
    told = pushed(code)
    live.push(told)
    bank.on(INQUIRY, said(**json.loads(told)))
    return code, told


def refund(live: Linked, code: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = live.shop.post("/v1/refunds", {"payment_id": code["payment_id"]} | fields)
    assert answer.status_code == 200, answer.content
    made: dict[str, Any] = answer.json()
    return made


def cancelled(told: bytes) -> bytes:
    return json.dumps(json.loads(told) | {"txnType": "D"}).encode()


def assert_it_went_back_once(live: Linked, code: dict[str, Any]) -> None:
    assert live.shop.get("/v1/balance").json() == {"available": 0, "reserved": 0, "currency": "THB"}
    payment = Payment.objects.get(pk=code["payment_id"])
    assert (payment.status, payment.amount_refunded) == ("refunded", payment.amount)
    assert Event.objects.filter(type="refund.completed").count() == 1
    assert Receipt.objects.get(kind="reversal").outcome == "ordered"
    assert not Receipt.objects.for_staff().exists()


def test_a_refund_takes_the_payment_back_and_the_banks_word_of_it_is_ours(
    live: Linked, bank: BblStandIn
) -> None:
    code, told = paid(live, bank)
    bank.on(VOID, said())
    made = refund(live, code)
    run_due()
    assert live.shop.get(f"/v1/refunds/{made['refund_id']}").json()["status"] == "completed"
    live.push(cancelled(told))
    assert_it_went_back_once(live, code)
    assert len(bank.to(VOID)) == 1


def test_the_banks_word_may_come_before_its_answer(live: Linked, bank: BblStandIn) -> None:
    code, told = paid(live, bank)
    bank.on(VOID, Reply(status=500))
    refund(live, code)
    run_due()
    live.push(cancelled(told))
    bank.on(INQUIRY, said(**json.loads(told), txnStatus="D"))
    pass_time()
    run_due()
    payment = Payment.objects.get(pk=code["payment_id"])
    assert Receipt.objects.get(kind="reversal").outcome == "ordered"
    assert payment.amount_refunding + payment.amount_refunded == payment.amount
    assert live.shop.get("/v1/balance").json()["available"] == 0


def test_what_the_bank_takes_back_by_itself_is_taken(live: Linked, bank: BblStandIn) -> None:
    code, told = paid(live, bank)
    live.push(cancelled(told))
    assert Receipt.objects.get(kind="reversal").outcome == "reversed"
    assert live.status(code) == "refunded"


def test_after_the_banks_day_the_refund_fails_and_the_money_stays(
    live: Linked, bank: BblStandIn, afternoon: Any
) -> None:
    code, _ = paid(live, bank)
    afternoon.move_to(LATE)
    made = refund(live, code)
    run_due()
    ended = live.shop.get(f"/v1/refunds/{made['refund_id']}").json()
    assert (ended["status"], ended["failure_code"]) == ("failed", "void_window_closed")
    assert live.shop.get("/v1/balance").json()["available"] == code["amount"]


def test_this_bank_takes_back_no_part_of_a_payment(live: Linked, bank: BblStandIn) -> None:
    code, told = paid(live, bank)
    part = {"payment_id": code["payment_id"], "amount": code["amount"] - 1}
    error = live.shop.post("/v1/refunds", part).json()["error"]
    assert (error["code"], error["param"]) == ("partial_refund_not_supported", "amount")
    assert live.shop.get("/v1/refunds").json()["total"] == 0
    live.push(cancelled(told))
    assert live.status(code) == "refunded"


def test_this_bank_pays_to_no_account(live: Linked, bank: BblStandIn) -> None:
    code, _ = paid(live, bank)
    to = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Somchai"}
    answer = live.shop.post("/v1/refunds", {"payment_id": code["payment_id"], "destination": to})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bank_not_configured")
    money_out = {"amount": 10_000, "currency": "THB"} | to
    assert live.shop.post("/v1/withdrawals", money_out).json()["error"]["code"] == "bank_not_configured"
