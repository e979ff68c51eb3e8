"""Every scenario of the sandbox bank, and an unpaid code, through all real processes."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import requests
from standardwebhooks import Webhook

from tests import webhook_receiver
from tests.flows.conftest import SECRET, ShopClient, UnpaidCode
from tests.flows.staff_browser import StaffBrowser
from tests.stack import Stack, wait_until
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow
PENDING, SUCCEEDED, FAILED = "payment.pending", "payment.succeeded", "payment.failed"
REFUNDED = "refund.completed"
EVENTS = [PENDING, SUCCEEDED, FAILED, REFUNDED, "refund.failed"]
AMOUNT = 150_000
SUSPENSE = """SELECT coalesce(sum(satang), 0) FROM (
    SELECT rolled_up_balance AS satang FROM ledger_account WHERE id = 'suspense:sandbox'
    UNION ALL SELECT amount FROM ledger_pendingentry WHERE account_id = 'suspense:sandbox') AS part"""
CLOSED = {"bank_code": "004", "bank_account": "4051230001", "account_name": "Somchai Jaidee"}
Code = dict[str, Any]


@dataclass
class ScenarioRun:
    """A shop with an endpoint, and staff at the console.

    sent: the expected webhook messages, by payment and event type.
    """

    client: ShopClient
    receiver: Receiver
    desk: StaffBrowser
    database: "psycopg.Connection[tuple[Any, ...]]"
    merchant_id: str
    left: set[str] = field(default_factory=set)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)

    def play(self, code: Code, scenario: str, **times: str) -> str:
        """Pay the code at the bank; return the bank transaction id."""
        order = {"qr_data": code["qr_data"], "scenario": scenario} | times
        return str(self.client.post("/sandbox/v1/payments", order)["bank_transaction_id"])

    def expired(self) -> Code:
        """A code that the shop has ended."""
        code: Code = self.client.qr_code()
        ended = self.client.post(f"/v1/qr-codes/{code['qr_code_id']}/expire", None)
        code["expires_at"] = ended["expires_at"]
        return code

    def wait_for_webhooks(self, code: Code, *events: str) -> None:
        """Wait until these events of the payment arrive."""
        expected = Counter((code["payment_id"], event) for event in events)
        self.sent |= expected
        self.receiver.wait_for(lambda received: expected <= events_of(received), 60)

    def find_exception(self, search: str) -> str:
        """The only exception that staff see, when it exists."""
        wait_until(lambda: bool(self.desk.waiting(search)), 60)
        (found,) = self.desk.waiting(search)
        return found

    def payment(self, code: Code) -> Any:
        return self.client.get(f"/Thai/v1/payments/{code['payment_id']}")

    def balance(self) -> int:
        return int(self.client.get("/v1/balance")["available"])

    def suspense(self) -> int:
        row = self.database.execute(SUSPENSE).fetchone()
        return int(row[0]) if row else 0

    def history(self, code: Code) -> list[tuple[str, str, int]]:
        rows = self.client.get("/v1/transactions?limit=100")["transactions"]
        ours = [row for row in rows if row["payment_id"] == code["payment_id"]]
        return [(row["type"], row["status"], row["amount"]) for row in ours]

    def notification_sources(self, code: Code) -> list[str]:
        """The sources of the bank transactions of the payment."""
        timeline = self.client.get(f"/v1/payments/{code['payment_id']}/timeline?limit=100")["timeline"]
        return [entry["details"]["source"] for entry in timeline if entry["type"] == "bank.notification"]


def events_of(received: list[ReceivedRequest]) -> Counter[tuple[str, str]]:
    shown = (each.json for each in received)
    return Counter((each["data"]["payment_id"], each["event"]) for each in shown if each["event"] in EVENTS)


@pytest.fixture(scope="module")
def run(stack: Stack) -> Iterator[ScenarioRun]:
    """Run the tests. Then assert a clean audit, the expected exceptions and no duplicate event."""
    made = json.loads(stack.manage("create_merchant", "--name", "Scenes", "--mode", "test", "--json"))
    client = ShopClient(stack.base_url, made["secret_key"])
    desk = StaffBrowser(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    database = psycopg.connect(stack.env["DATABASE_URL"], autocommit=True)
    with webhook_receiver.running_receiver() as endpoint, database:
        client.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS})
        scene = ScenarioRun(client, endpoint, desk, database, made["merchant_id"])
        before = set(desk.waiting())
        yield scene
        assert set(desk.waiting()) - before == scene.left
        assert events_of(endpoint.to("/hook")) == scene.sent
        stack.manage("audit")


@pytest.fixture
def late_money_is_accepted(run: ScenarioRun) -> Iterator[None]:
    run.desk.act("/admin/merchants/merchant/", "accept-late-money", run.merchant_id)
    yield
    run.desk.act("/admin/merchants/merchant/", "review-late-money", run.merchant_id)


def after(code: Code) -> str:
    """Return an instant after the expiry of the code."""
    return (datetime.fromisoformat(code["expires_at"]) + timedelta(seconds=1)).isoformat()


@pytest.mark.parametrize(
    ("scenario", "status", "event", "row", "sources"),
    [
        ("paid", "succeeded", SUCCEEDED, "payment", ["callback"]),
        ("declined", "failed", FAILED, "failed", ["callback"]),
        ("callback_lost", "succeeded", SUCCEEDED, "payment", ["inquiry"]),
        ("callback_repeated", "succeeded", SUCCEEDED, "payment", ["callback"] * 3),
    ],
)
def test_payment_succeeds_by_callback_repeated_callback_or_inquiry(
    run: ScenarioRun, scenario: str, status: str, event: str, row: str, sources: list[str]
) -> None:
    code, before = run.client.qr_code(), run.balance()
    run.play(code, scenario)
    run.client.wait_for_status(code, status)
    wait_until(lambda: run.notification_sources(code) == sources, 60)
    run.wait_for_webhooks(code, PENDING, event)
    assert run.history(code) == [(row, status, AMOUNT)]
    assert run.balance() - before == (AMOUNT if status == "succeeded" else 0)


def test_late_payment_is_an_exception(run: ScenarioRun) -> None:
    code, before = run.expired(), run.balance()
    run.play(code, "late", paid_at=after(code))
    run.left.add(run.find_exception(code["payment_id"]))
    run.wait_for_webhooks(code, PENDING, FAILED)
    assert (run.payment(code)["status"], run.balance(), run.history(code)) == ("expired", before, [])


def test_late_payment_succeeds_with_accept_policy(run: ScenarioRun, late_money_is_accepted: None) -> None:
    code, before = run.expired(), run.balance()
    run.play(code, "late", paid_at=after(code))
    paid = run.client.wait_for_status(code, "succeeded")
    assert datetime.fromisoformat(paid["completed_at"]) > datetime.fromisoformat(code["expires_at"])
    run.wait_for_webhooks(code, PENDING, FAILED, SUCCEEDED)
    assert run.balance() - before == AMOUNT
    assert not run.desk.waiting(code["payment_id"])


def test_payment_in_time_with_late_callback_succeeds(run: ScenarioRun) -> None:
    code, before = run.expired(), run.balance()
    run.wait_for_webhooks(code, PENDING, FAILED)
    assert run.payment(code)["status"] == "expired"
    in_time = run.payment(code)["created_at"]
    run.play(code, "reported_late", paid_at=in_time, report_at=after(code))
    run.client.wait_for_status(code, "succeeded")
    run.wait_for_webhooks(code, PENDING, FAILED, SUCCEEDED)
    assert run.balance() - before == AMOUNT


def test_payment_paid_twice_is_sent_back(run: ScenarioRun) -> None:
    code, before, suspense = run.client.qr_code(), run.balance(), run.suspense()
    run.play(code, "twice")
    second = run.find_exception(code["payment_id"])
    assert run.suspense() - suspense == AMOUNT
    run.desk.decide(second, "send-back")
    wait_until(lambda: "went back to the payer." in run.desk.case(second), 60)
    run.wait_for_webhooks(code, PENDING, SUCCEEDED)
    assert (run.suspense(), run.balance() - before) == (suspense, AMOUNT)
    assert run.history(code) == [("payment", "succeeded", AMOUNT)]


def test_failed_return_is_an_exception_again(run: ScenarioRun) -> None:
    code, suspense = run.client.qr_code(), run.suspense()
    run.play(code, "twice")
    second = run.find_exception(code["payment_id"])
    run.desk.decide(second, "send-to", **CLOSED)
    wait_until(lambda: "the bank refused the transfer" in run.desk.case(second), 60)
    assert run.desk.waiting(code["payment_id"]) == [second]
    run.left.add(second)
    run.wait_for_webhooks(code, PENDING, SUCCEEDED)
    assert run.suspense() - suspense == AMOUNT


@pytest.mark.parametrize(("scenario", "received"), [("over", 2 * AMOUNT), ("under", AMOUNT // 2)])
def test_accepted_wrong_amount_is_credited_and_refundable(
    run: ScenarioRun, scenario: str, received: int
) -> None:
    code, before = run.client.qr_code(), run.balance()
    run.play(code, scenario)
    found = run.find_exception(code["payment_id"])
    assert (run.payment(code)["status"], run.balance()) == ("pending", before)
    run.desk.decide(found, "accept")
    paid = run.payment(code)
    assert [paid[name] for name in ("status", "amount", "amount_received")] == ["succeeded", AMOUNT, received]
    assert run.balance() - before == received
    refund = run.client.post("/v1/refunds", {"payment_id": code["payment_id"]})
    assert refund["amount"] == received
    run.wait_for_webhooks(code, PENDING, SUCCEEDED, REFUNDED)
    assert run.history(code) == [("refund", "succeeded", -received), ("payment", "refunded", received)]


def test_unknown_reference_is_attached_to_payment(run: ScenarioRun) -> None:
    code, before = run.client.qr_code(), run.balance()
    found = run.find_exception(run.play(code, "unknown_reference"))
    assert (run.payment(code)["status"], run.balance()) == ("pending", before)
    assert code["payment_id"] in run.desk.case(found)
    run.desk.decide(found, "attach", payment_id=code["payment_id"])
    run.wait_for_webhooks(code, PENDING, SUCCEEDED)
    assert (run.payment(code)["status"], run.balance() - before) == ("succeeded", AMOUNT)
    assert run.history(code) == [("payment", "succeeded", AMOUNT)]


def test_bank_reversal_is_deducted_and_shown_as_refund(run: ScenarioRun) -> None:
    code, before = run.client.qr_code(), run.balance()
    run.play(code, "reversed")
    assert run.client.wait_for_status(code, "refunded")["amount_refunded"] == AMOUNT
    run.wait_for_webhooks(code, PENDING, SUCCEEDED, REFUNDED)
    assert run.balance() == before
    assert run.history(code) == [("refund", "succeeded", -AMOUNT), ("payment", "refunded", AMOUNT)]


def test_unpaid_code_expires_and_webhook_is_sent(unpaid: UnpaidCode) -> None:
    """The shortest expiry of a code is one minute."""
    client, code = unpaid.client, unpaid.code
    shown = unpaid.endpoint.wait_for(lambda found: bool(failures(found)), 180)
    (event,) = failures(shown)
    assert (event.json["data"]["payment_id"], event.json["data"]["status"]) == (code["payment_id"], "expired")
    assert event.headers["webhook-signature"] == signature(event)
    payment: dict[str, Any] = client.get(f"/Thai/v1/payments/{code['payment_id']}")
    assert payment["status"] == "expired"
    # Another test may freeze Redis meanwhile.
    assert 0 <= event.received_at - datetime.fromisoformat(payment["expires_at"]).timestamp() < 60
    assert requests.get(code["qr_image_url"], timeout=60).status_code == 410


def signature(event: ReceivedRequest) -> str:
    """Return what the header says if the secret signed the event.

    The code expires while other tests run: verify() would refuse the event five minutes after its arrival.
    """
    sent_at = datetime.fromtimestamp(int(event.headers["webhook-timestamp"]), UTC)
    assert abs(event.received_at - sent_at.timestamp()) < 60
    return Webhook(SECRET).sign(event.headers["webhook-id"], sent_at, event.body.decode())


def failures(received: list[ReceivedRequest]) -> list[ReceivedRequest]:
    return [each for each in received if each.json["event"] == "payment.failed"]
