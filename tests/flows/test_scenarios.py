"""All that the sandbox bank can do, by real parts: what becomes of the payment, the money and the shop."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests import receiver
from tests.flows.conftest import Till
from tests.flows.desk import Desk
from tests.receiver import Received, Receiver
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.slow
PENDING, SUCCEEDED, FAILED = "payment.pending", "payment.succeeded", "payment.failed"
REFUNDED = "refund.completed"
EVENTS = [PENDING, SUCCEEDED, FAILED, REFUNDED, "refund.failed"]
AMOUNT = 150_000
SUSPENSE = """SELECT coalesce(sum(satang), 0) FROM (
    SELECT settled AS satang FROM transactions_account WHERE id = 'suspense:sandbox'
    UNION ALL SELECT amount FROM transactions_unfolded WHERE account_id = 'suspense:sandbox') AS part"""
CLOSED = {"bank_code": "004", "bank_account": "4051230001", "account_name": "Somchai Jaidee"}
Code = dict[str, Any]


@dataclass
class Scene:
    """A shop with an endpoint, staff at the console, and what the tests leave to them.

    told: the events of each payment that its shop was told.
    """

    till: Till
    receiver: Receiver
    desk: Desk
    database: "psycopg.Connection[tuple[Any, ...]]"
    merchant_id: str
    left: set[str] = field(default_factory=set)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)

    def play(self, code: Code, scenario: str, **times: str) -> str:
        """Pay the code at the bank; the bank's id of it."""
        order = {"qr_data": code["qr_data"], "scenario": scenario} | times
        return str(self.till.post("/sandbox/v1/payments", order)["bank_transaction_id"])

    def expired(self) -> Code:
        """A code that its shop has ended."""
        code: Code = self.till.qr_code()
        ended = self.till.post(f"/v1/qr-codes/{code['qr_code_id']}/expire", None)
        code["expires_at"] = ended["expires_at"]
        return code

    def hears(self, code: Code, *events: str) -> None:
        """The shop is told these of the payment."""
        expected = Counter((code["payment_id"], event) for event in events)
        self.told |= expected
        self.receiver.wait_for(lambda received: expected <= heard(received), 60)

    def sees(self, search: str) -> str:
        """The one exception that staff find, as soon as it is there."""
        wait_until(lambda: bool(self.desk.waiting(search)), 60)
        (found,) = self.desk.waiting(search)
        return found

    def payment(self, code: Code) -> Any:
        return self.till.get(f"/Thai/v1/payments/{code['payment_id']}")

    def balance(self) -> int:
        return int(self.till.get("/v1/balance")["available"])

    def suspense(self) -> int:
        row = self.database.execute(SUSPENSE).fetchone()
        return int(row[0]) if row else 0

    def history(self, code: Code) -> list[tuple[str, str, int]]:
        rows = self.till.get("/v1/transactions?limit=100")["transactions"]
        ours = [row for row in rows if row["payment_id"] == code["payment_id"]]
        return [(row["type"], row["status"], row["amount"]) for row in ours]

    def notices(self, code: Code) -> list[str]:
        """By which ways the bank's word about the payment came."""
        timeline = self.till.get(f"/v1/payments/{code['payment_id']}/timeline?limit=100")["timeline"]
        return [entry["details"]["source"] for entry in timeline if entry["type"] == "bank.notice"]


def heard(received: list[Received]) -> Counter[tuple[str, str]]:
    told = (each.json for each in received)
    return Counter((each["data"]["payment_id"], each["event"]) for each in told if each["event"] in EVENTS)


@pytest.fixture(scope="module")
def scene(stack: Stack) -> Iterator[Scene]:
    """In the end the books are right, staff see what was left and nothing else, and nobody was told twice."""
    made = json.loads(stack.manage("create_merchant", "--name", "Scenes", "--mode", "test", "--json"))
    till = Till(stack.base_url, made["secret_key"])
    desk = Desk(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    database = psycopg.connect(stack.env["DATABASE_URL"], autocommit=True)
    with receiver.listening() as endpoint, database:
        till.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS})
        scene = Scene(till, endpoint, desk, database, made["merchant_id"])
        before = set(desk.waiting())
        yield scene
        assert set(desk.waiting()) - before == scene.left
        assert heard(endpoint.to("/hook")) == scene.told
        stack.manage("audit")


@pytest.fixture
def late_money_is_accepted(scene: Scene) -> Iterator[None]:
    scene.desk.choose("/admin/merchants/merchant/", "accept_late_money", scene.merchant_id)
    yield
    scene.desk.choose("/admin/merchants/merchant/", "review_late_money", scene.merchant_id)


def after(code: Code) -> str:
    """A moment after the code has ended."""
    return (datetime.fromisoformat(code["expires_at"]) + timedelta(seconds=1)).isoformat()


@pytest.mark.parametrize(
    ("scenario", "status", "event", "row", "ways"),
    [
        ("paid", "succeeded", SUCCEEDED, "payment", ["callback"]),
        ("declined", "failed", FAILED, "failed", ["callback"]),
        ("callback_lost", "succeeded", SUCCEEDED, "payment", ["inquiry"]),
        ("callback_repeated", "succeeded", SUCCEEDED, "payment", ["callback"] * 3),
    ],
)
def test_the_bank_tells_once_or_often_or_only_when_asked(
    scene: Scene, scenario: str, status: str, event: str, row: str, ways: list[str]
) -> None:
    code, before = scene.till.qr_code(), scene.balance()
    scene.play(code, scenario)
    scene.till.wait_for_status(code, status, seconds=20)
    wait_until(lambda: scene.notices(code) == ways, 60)
    scene.hears(code, PENDING, event)
    assert scene.history(code) == [(row, status, AMOUNT)]
    assert scene.balance() - before == (AMOUNT if status == "succeeded" else 0)


def test_late_money_waits_for_staff(scene: Scene) -> None:
    code, before = scene.expired(), scene.balance()
    scene.play(code, "late", paid_at=after(code))
    scene.left.add(scene.sees(code["payment_id"]))
    scene.hears(code, PENDING, FAILED)
    assert (scene.payment(code)["status"], scene.balance(), scene.history(code)) == ("expired", before, [])


def test_late_money_pays_a_merchant_who_takes_it(scene: Scene, late_money_is_accepted: None) -> None:
    code, before = scene.expired(), scene.balance()
    scene.play(code, "late", paid_at=after(code))
    paid = scene.till.wait_for_status(code, "succeeded")
    assert datetime.fromisoformat(paid["completed_at"]) > datetime.fromisoformat(code["expires_at"])
    scene.hears(code, PENDING, FAILED, SUCCEEDED)
    assert scene.balance() - before == AMOUNT
    assert not scene.desk.waiting(code["payment_id"])


def test_what_was_paid_in_time_and_told_after_the_end_succeeds(scene: Scene) -> None:
    code, before = scene.expired(), scene.balance()
    scene.hears(code, PENDING, FAILED)
    assert scene.payment(code)["status"] == "expired"
    in_time = scene.payment(code)["created_at"]
    scene.play(code, "reported_late", paid_at=in_time, report_at=after(code))
    scene.till.wait_for_status(code, "succeeded", seconds=20)
    scene.hears(code, PENDING, FAILED, SUCCEEDED)
    assert scene.balance() - before == AMOUNT


def test_the_second_of_two_payments_goes_back_to_its_payer(scene: Scene) -> None:
    code, before, suspense = scene.till.qr_code(), scene.balance(), scene.suspense()
    scene.play(code, "twice")
    second = scene.sees(code["payment_id"])
    assert scene.suspense() - suspense == AMOUNT
    scene.desk.decide(second, "send-back")
    wait_until(lambda: "It was sent back." in scene.desk.case(second), 60)
    scene.hears(code, PENDING, SUCCEEDED)
    assert (scene.suspense(), scene.balance() - before) == (suspense, AMOUNT)
    assert scene.history(code) == [("payment", "succeeded", AMOUNT)]


def test_what_the_payers_bank_does_not_take_back_waits_again(scene: Scene) -> None:
    code, suspense = scene.till.qr_code(), scene.suspense()
    scene.play(code, "twice")
    second = scene.sees(code["payment_id"])
    scene.desk.decide(second, "send-to", **CLOSED)
    wait_until(lambda: "rejected_by_bank" in scene.desk.case(second), 60)
    assert scene.desk.waiting(code["payment_id"]) == [second]
    scene.left.add(second)
    scene.hears(code, PENDING, SUCCEEDED)
    assert scene.suspense() - suspense == AMOUNT


@pytest.mark.parametrize(("scenario", "received"), [("over", 2 * AMOUNT), ("under", AMOUNT // 2)])
def test_another_amount_that_staff_accept_is_what_the_shop_has_and_can_give_back(
    scene: Scene, scenario: str, received: int
) -> None:
    code, before = scene.till.qr_code(), scene.balance()
    scene.play(code, scenario)
    found = scene.sees(code["payment_id"])
    assert (scene.payment(code)["status"], scene.balance()) == ("pending", before)
    scene.desk.decide(found, "accept")
    paid = scene.payment(code)
    assert [paid[name] for name in ("status", "amount", "amount_received")] == ["succeeded", AMOUNT, received]
    assert scene.balance() - before == received
    refund = scene.till.post("/v1/refunds", {"payment_id": code["payment_id"]})
    assert refund["amount"] == received
    scene.hears(code, PENDING, SUCCEEDED, REFUNDED)
    assert scene.history(code) == [
        ("refund", "succeeded", -received),
        ("payment", "refunded", received),
    ]


def test_money_with_an_unknown_reference_is_given_to_the_payment_it_was_meant_for(scene: Scene) -> None:
    code, before = scene.till.qr_code(), scene.balance()
    found = scene.sees(scene.play(code, "unknown_reference"))
    assert (scene.payment(code)["status"], scene.balance()) == ("pending", before)
    assert code["payment_id"] in scene.desk.case(found)
    scene.desk.decide(found, "attach", payment=code["payment_id"])
    scene.hears(code, PENDING, SUCCEEDED)
    assert (scene.payment(code)["status"], scene.balance() - before) == ("succeeded", AMOUNT)
    assert scene.history(code) == [("payment", "succeeded", AMOUNT)]


def test_money_that_the_bank_takes_back_leaves_the_balance_as_a_refund(scene: Scene) -> None:
    code, before = scene.till.qr_code(), scene.balance()
    scene.play(code, "reversed")
    assert scene.till.wait_for_status(code, "refunded", seconds=20)["amount_refunded"] == AMOUNT
    scene.hears(code, PENDING, SUCCEEDED, REFUNDED)
    assert scene.balance() == before
    assert scene.history(code) == [("refund", "succeeded", -AMOUNT), ("payment", "refunded", AMOUNT)]
