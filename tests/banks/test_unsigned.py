"""Siam Commercial Bank does not sign its notifications: its API confirms the money before it is credited."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import clock, thaiqr
from core.clock import BANGKOK
from merchants import links
from merchants.links import Terms
from receipts import acts
from receipts.models import ConfirmationInquiry, Deed, Notice, Receipt, Waiting
from tests.banks import scb_stand_in
from tests.banks.scb_stand_in import CONFIRMATION, ScbStandIn, confirmation, success, transaction
from tests.conftest import new_client, open_shop
from tests.receipts.cast import WHY
from tests.receipts.inquiries.cast import sweep
from tests.receipts.staff import page_of, read, staff
from tests.receipts.statements.cast import confirm_all, load, plain
from tests.receiver import Reply

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
DAY = "2026-11-21"
SILENT = Reply(503, body=b"")


class Door:
    """A live shop at the stand-in, and the address that the bank calls."""

    def __init__(self, bank: ScbStandIn) -> None:
        self.bank, self.shop = bank, open_shop("Khao Soi", mode="live")
        terms = Terms("scb", bank.link.biller_id, reference3="PTF", credentials=bank.link.credentials)
        _, self.secret = links.connect(merchant_id=self.shop.merchant.id, terms=terms, now=clock.now())
        self.shop.merchant.refresh_from_db()
        self.code = self.shop.qr_code()
        self.reference = str(thaiqr.parse(self.code["qr_data"]).reference1)
        self.told = {
            "billPaymentRef1": self.reference,
            "transactionDateandTime": clock.now().astimezone(BANGKOK).isoformat(timespec="seconds"),
        }

    def notify(self, **changes: Any) -> Any:
        path = f"/banks/scb/notices/{self.secret}"
        body = confirmation(**self.told | changes)
        return new_client().post(path, body, content_type="application/json")

    def answers(self, *replies: Reply, **asked: str) -> None:
        """What the API of the bank says about the code."""
        self.bank.knows(DAY, *replies, **{"reference": self.reference} | asked)

    def paid(self, **changes: Any) -> Reply:
        return success([transaction(**self.told | changes)])

    @property
    def status(self) -> str:
        return str(self.shop.payment(self.code["payment_id"])["status"])


@pytest.fixture
def door(db: None, noon: datetime) -> Iterator[Door]:
    with time_machine.travel(noon, tick=False), scb_stand_in.opened() as bank:
        yield Door(bank)


def test_notification_alone_credits_nothing_and_is_kept_and_answered(door: Door) -> None:
    door.answers(success([]))
    answer = door.notify()
    assert (answer.status_code, answer.json()["transactionId"]) == (200, CONFIRMATION["transactionId"])
    assert (door.status, Receipt.objects.count()) == ("pending", 0)
    assert sweep(1) == 1
    assert (door.status, Receipt.objects.count()) == ("pending", 0)
    kept = Notice.objects.get()
    assert (kept.verdict, json.loads(kept.body)["billPaymentRef1"]) == ("unsigned", door.reference)


def test_payment_succeeds_by_the_next_sweep_when_the_bank_confirms_it(door: Door) -> None:
    door.answers(door.paid())
    door.notify()
    assert sweep(0) == 1
    receipt = Receipt.objects.get()
    assert (door.status, receipt.source, receipt.is_confirmed) == ("succeeded", "inquiry", True)
    assert ConfirmationInquiry.objects.get().confirmed_at is not None
    assert sweep(3600) == 0


@pytest.mark.parametrize(("received_early", "status"), [(1, "succeeded"), (-1, "expired")])
def test_money_is_late_by_the_time_when_the_unsigned_notification_was_received(
    door: Door, received_early: int, status: str
) -> None:
    """The clock of the bank is 5 s ahead, and its answer comes after the code has expired."""
    end = datetime.fromisoformat(door.code["expires_at"])
    paid_at = (end + timedelta(seconds=5)).astimezone(BANGKOK).isoformat(timespec="seconds")
    door.told["transactionDateandTime"] = paid_at
    door.answers(door.paid())
    with time_machine.travel(end - timedelta(seconds=received_early), tick=False) as now:
        door.notify()
        now.move_to(end + timedelta(seconds=2))
        sweep(0)
        assert (door.status, Receipt.objects.get().is_confirmed) == (status, True)


def test_forged_amount_is_not_believed(door: Door) -> None:
    door.answers(door.paid())
    door.notify(amount="2000000.00")
    sweep(0)
    assert (Receipt.objects.get().amount, door.status) == (150_000, "succeeded")


def test_bank_that_does_not_answer_is_asked_again_with_back_off(door: Door) -> None:
    door.answers(SILENT, SILENT, door.paid())
    door.notify()
    sweep(0)
    first = ConfirmationInquiry.objects.get()
    assert (first.said, first.due_at) == ("no_answer", clock.now() + timedelta(seconds=1))
    assert sweep(0.5) == 0
    assert sweep(1) == 1
    assert ConfirmationInquiry.objects.get().due_at == clock.now() + timedelta(seconds=3)
    sweep(3)
    assert door.status == "succeeded"


def test_repeated_notification_asks_one_question(door: Door) -> None:
    door.answers(success([]))
    for _ in range(3):
        assert door.notify().status_code == 200
    assert (Notice.objects.count(), ConfirmationInquiry.objects.count()) == (3, 1)
    assert sweep(0) == 1


def test_money_for_unknown_reference_is_asked_about_and_waits_for_staff(door: Door) -> None:
    door.answers(door.paid(billPaymentRef1="TYPEDBYHAND"), reference="TYPEDBYHAND")
    door.notify(billPaymentRef1="TYPEDBYHAND")
    assert not Receipt.objects.exists()
    sweep(0)
    receipt = Receipt.objects.get()
    assert (receipt.outcome, receipt.is_confirmed) == ("unmatched", True)


def test_notification_that_is_not_confirmed_for_five_minutes_is_an_exception(door: Door) -> None:
    door.answers(success([]))
    door.notify()
    sweep(0)
    assert not Waiting.objects.exists()
    sweep(301)
    listed = Waiting.objects.get()
    assert (listed.why, listed.amount, listed.payment_id) == (
        "unconfirmed", 150_000, door.code["payment_id"],
    )  # fmt: skip
    malee = staff("malee", "resolve_receipt")
    assert "does not confirm it" in read(malee, "/admin/receipts/waiting/")
    counted = new_client().get("/metrics").content.decode()
    assert 'notices_for_staff{money="live"} 1.0' in counted
    assert 'receipts_for_staff{money="live"} 0.0' in counted
    assert "without a signature" in read(malee, page_of(listed.id))
    acts.dismiss(listed.id, by="malee", why=WHY, now=clock.now())
    assert not Waiting.objects.exists()


def test_exception_ends_when_the_bank_confirms_after_all(door: Door) -> None:
    door.answers(success([]))
    door.notify()
    sweep(301)
    assert Waiting.objects.count() == 1
    door.answers(door.paid())
    sweep(700)
    assert (Waiting.objects.count(), door.status) == (0, "succeeded")


def test_statement_and_unsigned_notification_together_are_not_yet_confirmed(door: Door) -> None:
    door.answers(success([]))
    door.notify()
    told = f"2026-11-21,12:00:00,{scb_stand_in.BILLER},{door.reference},,PTF,1500.00,credit,Somchai,014"
    load(plain(told), bank="scb")
    balance = door.shop.get("/v1/balance").json()
    assert (balance["available"], balance["unconfirmed"]) == (0, 150_000)
    receipt = Receipt.objects.get()
    assert not receipt.is_confirmed
    assert Deed.CONFIRMED in acts.possible(receipt)
    confirm_all()
    assert door.shop.get("/v1/balance").json()["available"] == 150_000


def test_timeline_shows_that_the_bank_is_asked_first(door: Door) -> None:
    door.answers(door.paid())
    door.notify()
    sweep(0)
    path = f"/v1/payments/{door.code['payment_id']}/timeline"
    entries = door.shop.get(path).json()["timeline"]
    told = [entry for entry in entries if entry["type"] == "bank.notice"]
    assert [entry["details"]["verdict"] for entry in reversed(told)] == ["unsigned", "new"]
    assert "not signed" in told[-1]["summary"]
