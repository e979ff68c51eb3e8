"""Staff ask a bank about a slip of whose transfer we have not heard."""

import logging
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from core import clock, thaiqr
from core.slips import Slip, WalletSlip, slip_payload
from merchants.models import BankLink, Merchant
from receipts import inquiries, turns
from receipts.models import Inquiry, Receipt, SlipCheck, Turn
from sandbox.models import SandboxPayment
from tests.banks import scb_stand_in
from tests.banks.scb_stand_in import BILLER, SLIP, ScbStandIn, refused, success, transaction
from tests.conftest import BankCaller, Shop
from tests.receipts.inquiries.cast import database_now, sweep
from tests.receipts.staff import Odd, staff
from tests.receiver import Reply

PAGE = "/admin/receipts/slipcheck/check/"
BUTTON = "Ask the bank"
pytestmark = pytest.mark.django_db


@pytest.fixture
def bank() -> Iterator[ScbStandIn]:
    with scb_stand_in.opened() as stand_in:
        yield stand_in


@pytest.fixture
def live(db: None, bank: ScbStandIn, noon: datetime) -> Iterator[Shop]:
    """A shop at the bank, around noon."""
    with time_machine.travel(noon):
        yield scb_stand_in.shop_at(bank)


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt")


def check(client: Client, slip: str = SLIP["transRef"], **fields: Any) -> str:
    answer = client.post(PAGE, {"text": slip_payload(Slip("014", slip))} | fields)
    return answer.content.decode()


def ask(client: Client, of: str) -> str:
    """About the slip that was shown last."""
    number = SlipCheck.objects.latest("id").pk
    answer = client.post(f"/admin/receipts/slipcheck/{number}/ask/", {"of": of})
    assert answer.status_code == 200
    return answer.content.decode()


def shown(client: Client, of: str) -> str:
    check(client)
    return ask(client, of)


def reference_of(code: dict[str, Any]) -> str:
    return thaiqr.parse(code["qr_data"]).reference1 or ""


def knows(bank: ScbStandIn, code: dict[str, Any], **changes: Any) -> None:
    """The bank knows the slip, of money for this code."""
    bank.knows_slip(success(SLIP | {"ref1": reference_of(code)} | changes))


def arrives(shop: Shop, bank: ScbStandIn, code: dict[str, Any], **changes: Any) -> None:
    """The money, by the next round of inquiries."""
    reference, now = reference_of(code), clock.now().astimezone(clock.BANGKOK)
    told = {
        "transactionId": SLIP["transRef"],
        "billPaymentRef1": reference,
        "transactionDateandTime": now.isoformat(timespec="seconds"),
    }
    bank.knows(f"{now:%Y-%m-%d}", success([transaction(**told | changes)]), reference=reference)
    Turn.objects.update(free_at=Now())
    assert inquiries.inquire_due(now=clock.now) == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_a_slip_of_which_we_heard_is_not_asked_about(shop: Shop, bank: ScbStandIn, malee: Client) -> None:
    told = BankCaller(shop.http)
    Odd(shop, told).told(shop.qr_code(), slip_reference=SLIP["transRef"])
    assert BUTTON not in check(malee)


@pytest.mark.parametrize(("name", "is_offered"), [("scb", True), ("sandbox", True), ("bbl", False)])
def test_only_a_bank_that_knows_slips_can_be_asked(
    shop: Shop, malee: Client, name: str, is_offered: bool
) -> None:
    mode = "test" if name == "sandbox" else "live"
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode=mode, bank=name)
    code = shop.qr_code()
    assert (BUTTON in check(malee, shown_for=code["payment_id"])) == is_offered


def test_a_wallets_slip_is_not_asked_about(malee: Client) -> None:
    slip = WalletSlip("P2P", "50001234567890", clock.now().date())
    page = malee.post(PAGE, {"text": slip_payload(slip)}).content.decode()
    assert "We have not heard" in page
    assert BUTTON not in page
    assert "Nobody can be asked" in ask(malee, "mch_x")


def test_money_for_a_code_of_ours_comes_in_by_the_usual_door(
    live: Shop, bank: ScbStandIn, malee: Client
) -> None:
    code = live.qr_code()
    knows(bank, code)
    page = check(malee, shown_for=code["payment_id"])
    assert f'value="{code["payment_id"]}"' in page
    page = ask(malee, code["payment_id"])
    assert "The bank of Somtam House knows it: 1,500.00 THB on 2026-11-21 at 11:30:58 to ร้านส้มตำ" in page
    assert (
        f"for payment {code['payment_id']} of Somtam House, and the bank is being asked about it now" in page
    )
    assert (Receipt.objects.count(), Inquiry.objects.get().payment_id) == (0, code["payment_id"])

    arrives(live, bank, code)
    assert Receipt.objects.get().source == "inquiry"
    assert f"It paid payment {code['payment_id']}" in check(malee)
    assert "meanwhile: check the slip again" in ask(malee, code["payment_id"])


def test_a_code_that_was_asked_about_before_is_asked_about_again(
    live: Shop, bank: ScbStandIn, malee: Client
) -> None:
    code = live.qr_code()
    Inquiry.objects.create(
        payment_id=code["payment_id"],
        bank="scb",
        step=3,
        due_at=clock.now() + timedelta(hours=1),
        created_at=clock.now(),
    )
    knows(bank, code)
    shown(malee, code["payment_id"])
    asked = Inquiry.objects.get()
    assert asked.due_at is not None
    assert (asked.due_at <= clock.now(), asked.step, asked.bank) == (True, 3, "scb")


def test_the_bank_may_be_asked_by_a_merchant_where_no_payment_is_known(
    live: Shop, bank: ScbStandIn, malee: Client
) -> None:
    code = live.qr_code()
    knows(bank, code)
    assert BUTTON in check(malee)
    assert code["payment_id"] in ask(malee, live.merchant.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"ref1": "NOBODYKNOWSTHIS00000"},
        {"ref1": ""},
        {"receiver": {"proxy": {"type": "BILLERID", "value": "010555000000009"}}},
    ],
)
def test_money_for_somebody_else_pays_nothing(
    live: Shop, bank: ScbStandIn, malee: Client, changes: dict[str, Any]
) -> None:
    code = live.qr_code()
    knows(bank, code, **changes)
    assert "It is for no code of ours at that bank" in shown(malee, code["payment_id"])
    assert not Inquiry.objects.exists()


def test_a_code_at_another_bank_is_not_meant(live: Shop, bank: ScbStandIn, shop: Shop, malee: Client) -> None:
    knows(bank, shop.qr_code(), receiver=None)
    assert "It is for no code of ours at that bank" in shown(malee, live.merchant.id)


def test_late_money_is_asked_about_too(live: Shop, bank: ScbStandIn, malee: Client) -> None:
    code = live.qr_code()
    live.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    knows(bank, code)
    assert "the bank is being asked about it now" in shown(malee, code["payment_id"])


def test_a_payment_that_is_paid_is_not_asked_about(live: Shop, bank: ScbStandIn, malee: Client) -> None:
    code = live.qr_code()
    knows(bank, code)
    shown(malee, code["payment_id"])
    arrives(live, bank, code, transactionId="of-another-slip")
    assert "whose status is succeeded. Perhaps this transfer paid it" in shown(malee, code["payment_id"])
    assert Inquiry.objects.get().due_at is None


def test_a_transfer_that_the_bank_does_not_know_proves_nothing(
    live: Shop, bank: ScbStandIn, malee: Client
) -> None:
    bank.knows_slip(refused(404, 1104))
    assert "The bank of Somtam House knows no such transfer" in shown(malee, live.merchant.id)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refused(500), "The bank did not answer"),
        (Reply(closes=True), "The bank did not answer"),
        (success({}), "The bank&#x27;s answer cannot be read"),
    ],
)
def test_no_answer_is_said_and_decides_nothing(
    live: Shop, bank: ScbStandIn, malee: Client, reply: Reply, words: str
) -> None:
    bank.knows_slip(reply)
    assert words in shown(malee, live.merchant.id)
    assert not Inquiry.objects.exists()


@pytest.mark.parametrize("of", ["", "pay_x", "mch_x", "<script>"])
def test_who_has_no_bank_cannot_be_asked(malee: Client, of: str) -> None:
    page = shown(malee, of)
    assert "Nobody can be asked" in page or "This field is required" in page
    assert "<script>" not in page


def test_a_question_takes_one_of_the_calls_that_the_bank_takes_in_a_second(
    live: Shop, bank: ScbStandIn, malee: Client
) -> None:
    knows(bank, live.qr_code())
    before, wait = database_now(), timedelta(seconds=0.2)
    shown(malee, live.merchant.id)
    assert before + wait <= Turn.objects.get().free_at <= database_now() + wait


def test_a_bank_that_is_being_asked_is_not_asked_meanwhile(
    live: Shop, bank: ScbStandIn, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.2)
    Turn.objects.create(bank="scb", free_at=Now() + timedelta(minutes=1))
    assert "is being asked about other money" in shown(malee, live.merchant.id)
    assert bank.receiver.requests == []


def test_while_somebody_asks_nobody_else_waits(
    live: Shop, bank: ScbStandIn, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", math.inf)
    with turns.of("scb"):
        assert "is being asked about other money" in shown(malee, live.merchant.id)
    assert bank.receiver.requests == []
    assert "is being asked" not in shown(malee, live.merchant.id)


def test_who_asked_is_noted_and_nothing_of_the_answer_is_logged(
    live: Shop, bank: ScbStandIn, malee: Client, caplog: pytest.LogCaptureFixture
) -> None:
    knows(bank, live.qr_code())
    with caplog.at_level(logging.DEBUG):
        shown(malee, live.merchant.id)
    assert LogEntry.objects.get().change_message == f"Asked the bank of {live.merchant.id}."
    for secret in (bank.secret, "token-1", "SUSIRINEE", BILLER):
        assert secret not in caplog.text


def test_strangers_and_staff_without_a_say_ask_nothing(live: Shop, malee: Client, client: Client) -> None:
    check(malee)
    door = f"/admin/receipts/slipcheck/{SlipCheck.objects.get().pk}/ask/"
    assert client.post(door, {"of": live.merchant.id}).status_code == 302
    assert staff("nobody").post(door, {"of": live.merchant.id}).status_code == 403
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(door, {"of": live.merchant.id}).status_code == 403
    assert malee.get(door).status_code == 200
    assert malee.post("/admin/receipts/slipcheck/999999/ask/", {"of": "x"}).status_code == 404
    assert not LogEntry.objects.exists()


def test_a_link_that_is_not_in_order_is_said(live: Shop, bank: ScbStandIn, malee: Client) -> None:
    BankLink.objects.update(credentials_sealed="of other keys")
    assert "its link is not in order" in shown(malee, live.merchant.id)
    assert bank.receiver.requests == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("books_are_right")
def test_the_sandbox_bank_is_asked_over_http(
    shop: Shop, malee: Client, live_server: Any, settings: Any
) -> None:
    settings.BASE_URL = live_server.url
    code = shop.qr_code()
    asked_for = {"qr_data": code["qr_data"], "scenario": "callback_lost"}
    assert shop.post("/sandbox/v1/payments", asked_for).status_code == 200
    paid = SandboxPayment.objects.get()
    slip = slip_payload(Slip(paid.payer_bank_code, paid.slip_reference))
    assert BUTTON in malee.post(PAGE, {"text": slip, "shown_for": code["payment_id"]}).content.decode()
    assert "the bank is being asked about it now" in ask(malee, code["payment_id"])
    assert sweep(0) == 1
    assert f"It paid payment {code['payment_id']}" in malee.post(PAGE, {"text": slip}).content.decode()
