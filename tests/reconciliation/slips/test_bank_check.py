"""Staff ask a bank about a slip whose transfer no bank has reported."""

import logging
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from core import clock
from core.thai import thaiqr
from core.thai.slips import Slip, slip_payload
from merchants.models import BankConnection, Merchant
from reconciliation.inquiries import rate_limit, services as inquiries
from reconciliation.models import BankRateLimit, BankTransaction, Inquiry, SlipCheck
from sandbox.models import SandboxPayment
from tests.banks import fake_scb
from tests.banks.fake_scb import BILLER, SLIP, FakeScb, error_response, success, transaction
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, staff_client
from tests.reconciliation.inquiries.builders import database_now, sweep
from tests.staff_acts import acts_of_staff
from tests.thai_codes import wallet_slip
from tests.webhook_receiver import Reply

PAGE = "/admin/reconciliation/slipcheck/check/"
BUTTON = "Ask the bank"
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def bank() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


@pytest.fixture
def live(db: None, bank: FakeScb, noon: datetime) -> Iterator[Shop]:
    """A shop at the bank, at noon."""
    with time_machine.travel(noon):
        yield fake_scb.shop_at(bank)


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_banktransaction", "check_slip", "ask_bank")


def check(client: Client, slip: str = SLIP["transRef"], **fields: Any) -> str:
    answer = client.post(PAGE, {"text": slip_payload(Slip("014", slip))} | fields)
    return answer.content.decode()


def ask(client: Client, of: str) -> str:
    """Ask the bank about the slip that was checked last."""
    number = SlipCheck.objects.latest("id").pk
    answer = client.post(
        f"/admin/reconciliation/slipcheck/{quote(number)}/ask/", {"payment_or_merchant_id": of}
    )
    assert answer.status_code == 200
    return answer.content.decode()


def shown(client: Client, of: str) -> str:
    check(client)
    return ask(client, of)


def reference_of(code: dict[str, Any]) -> str:
    return thaiqr.parse(code["qr_data"]).reference1


def knows(bank: FakeScb, code: dict[str, Any], **changes: Any) -> None:
    """The bank answers that the slip's money is for this code."""
    bank.on_slip(success(SLIP | {"ref1": reference_of(code)} | changes))


def arrives(shop: Shop, bank: FakeScb, code: dict[str, Any], **changes: Any) -> None:
    """Return the bank transaction that the next inquiries find."""
    reference, now = reference_of(code), clock.now().astimezone(clock.BANGKOK)
    reported = {
        "transactionId": SLIP["transRef"],
        "billPaymentRef1": reference,
        "transactionDateandTime": now.isoformat(timespec="seconds"),
    }
    bank.on_inquiry(f"{now:%Y-%m-%d}", success([transaction(**reported | changes)]), reference=reference)
    BankRateLimit.objects.update(available_at=Now())
    assert inquiries.inquire_due(now=clock.now) == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_slip_of_a_reported_transfer_makes_no_slip_lookup(shop: Shop, bank: FakeScb, malee: Client) -> None:
    reported = SandboxBankClient(shop.http)
    Seller(shop, reported).report(shop.qr_code(), slip_reference=SLIP["transRef"])
    assert BUTTON not in check(malee)


@pytest.mark.parametrize(("name", "is_offered"), [("scb", True), ("sandbox", True), ("bbl", False)])
def test_bank_without_slip_lookup_cannot_be_asked(
    shop: Shop, malee: Client, name: str, is_offered: bool
) -> None:
    mode = "test" if name == "sandbox" else "live"
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode=mode, bank=name)
    code = shop.qr_code()
    assert (BUTTON in check(malee, claimed_payment_id=code["payment_id"])) == is_offered


def test_wallet_slip_makes_no_slip_lookup(malee: Client) -> None:
    page = malee.post(PAGE, {"text": wallet_slip()}).content.decode()
    assert "No bank has reported" in page
    assert BUTTON not in page
    assert "No bank can be asked" in ask(malee, "mch_x")


def test_slip_lookup_of_a_known_qr_code_schedules_an_inquiry(
    live: Shop, bank: FakeScb, malee: Client
) -> None:
    code = live.qr_code()
    knows(bank, code)
    page = check(malee, claimed_payment_id=code["payment_id"])
    assert f'value="{code["payment_id"]}"' in page
    page = ask(malee, code["payment_id"])
    assert "The bank of Somtam House knows it: 1,500.00 THB on 2026-11-21 11:30:58 to ร้านส้มตำ" in page
    assert (
        f"for payment {code['payment_id']} of Somtam House, and the bank is being asked about it now" in page
    )
    assert (BankTransaction.objects.count(), Inquiry.objects.get().payment_id) == (0, code["payment_id"])

    arrives(live, bank, code)
    assert BankTransaction.objects.get().source == "inquiry"
    assert f"It paid payment {code['payment_id']}" in check(malee)
    assert "meanwhile: check the slip again" in ask(malee, code["payment_id"])


def test_slip_lookup_reschedules_an_existing_inquiry(live: Shop, bank: FakeScb, malee: Client) -> None:
    code = live.qr_code()
    Inquiry.objects.create(
        payment_id=code["payment_id"],
        bank="scb",
        schedule_index=3,
        due_at=clock.now() + timedelta(hours=1),
        created_at=clock.now(),
    )
    knows(bank, code)
    shown(malee, code["payment_id"])
    asked = Inquiry.objects.get()
    assert asked.due_at is not None
    assert (asked.due_at <= clock.now(), asked.schedule_index, asked.bank) == (True, 3, "scb")


def test_slip_lookup_works_with_a_merchant_id(live: Shop, bank: FakeScb, malee: Client) -> None:
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
def test_slip_of_money_for_another_payee_pays_nothing(
    live: Shop, bank: FakeScb, malee: Client, changes: dict[str, Any]
) -> None:
    code = live.qr_code()
    knows(bank, code, **changes)
    assert "It is for no QR code of this service at that bank" in shown(malee, code["payment_id"])
    assert not Inquiry.objects.exists()


def test_slip_of_a_code_at_another_bank_pays_nothing(
    live: Shop, bank: FakeScb, shop: Shop, malee: Client
) -> None:
    knows(bank, shop.qr_code(), receiver=None)
    assert "It is for no QR code of this service at that bank" in shown(malee, live.merchant.id)


def test_slip_lookup_of_an_expired_code_schedules_an_inquiry(
    live: Shop, bank: FakeScb, malee: Client
) -> None:
    code = live.qr_code()
    live.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    knows(bank, code)
    assert "the bank is being asked about it now" in shown(malee, code["payment_id"])


def test_slip_lookup_of_a_paid_payment_schedules_no_inquiry(live: Shop, bank: FakeScb, malee: Client) -> None:
    code = live.qr_code()
    knows(bank, code)
    shown(malee, code["payment_id"])
    arrives(live, bank, code, transactionId="of-another-slip")
    assert "which is succeeded. Perhaps this transfer paid it" in shown(malee, code["payment_id"])
    assert Inquiry.objects.get().due_at is None


def test_slip_unknown_to_the_bank_is_no_proof(live: Shop, bank: FakeScb, malee: Client) -> None:
    bank.on_slip(error_response(404, 1104))
    assert "The bank of Somtam House has no such transfer" in shown(malee, live.merchant.id)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (error_response(500), "The bank did not answer"),
        (Reply(closes=True), "The bank did not answer"),
        (success({}), "The bank&#x27;s answer cannot be read"),
    ],
)
def test_slip_lookup_without_answer_changes_nothing(
    live: Shop, bank: FakeScb, malee: Client, reply: Reply, words: str
) -> None:
    bank.on_slip(reply)
    assert words in shown(malee, live.merchant.id)
    assert not Inquiry.objects.exists()


@pytest.mark.parametrize("of", ["", "pay_x", "mch_x", "<script>"])
def test_slip_lookup_needs_a_payment_or_merchant_with_a_bank(malee: Client, of: str) -> None:
    page = shown(malee, of)
    assert "No bank can be asked" in page or "This field is required" in page
    assert "<script>" not in page


def test_slip_lookup_counts_towards_the_bank_rate_limit(live: Shop, bank: FakeScb, malee: Client) -> None:
    knows(bank, live.qr_code())
    before, wait = database_now(), timedelta(seconds=0.2)
    shown(malee, live.merchant.id)
    assert before + wait <= BankRateLimit.objects.get().available_at <= database_now() + wait


def test_slip_lookup_is_refused_while_the_bank_is_busy(
    live: Shop, bank: FakeScb, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "PATIENCE_SECONDS", 0.2)
    BankRateLimit.objects.create(bank="scb", available_at=Now() + timedelta(minutes=1))
    assert "is busy with other inquiries" in shown(malee, live.merchant.id)
    assert bank.requests == []


def test_concurrent_slip_lookup_is_refused_at_once(
    live: Shop, bank: FakeScb, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "PATIENCE_SECONDS", math.inf)
    with rate_limit.exclusive_call("scb"):
        assert "is busy with other inquiries" in shown(malee, live.merchant.id)
    assert bank.requests == []
    assert "is busy with" not in shown(malee, live.merchant.id)


def test_slip_lookup_logs_the_actor_and_no_payer_data(
    live: Shop, bank: FakeScb, malee: Client, caplog: pytest.LogCaptureFixture
) -> None:
    knows(bank, live.qr_code())
    with caplog.at_level(logging.DEBUG):
        shown(malee, live.merchant.id)
    record = acts_of_staff().get()
    assert (record.act, record.after) == ("bank_asked", {"payment_or_merchant_id": live.merchant.id})
    for secret in (bank.secret, "token-1", "SUSIRINEE", BILLER):
        assert secret not in caplog.text


def test_slip_lookup_needs_permission_and_csrf_token(live: Shop, malee: Client, client: Client) -> None:
    check(malee)
    url = f"/admin/reconciliation/slipcheck/{quote(SlipCheck.objects.get().pk)}/ask/"
    assert client.post(url, {"payment_or_merchant_id": live.merchant.id}).status_code == 302
    assert (
        staff_client("nobody", "check_slip")
        .post(url, {"payment_or_merchant_id": live.merchant.id})
        .status_code
        == 403
    )
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(url, {"payment_or_merchant_id": live.merchant.id}).status_code == 403
    assert malee.get(url).status_code == 200
    assert (
        malee.post("/admin/reconciliation/slipcheck/999999/ask/", {"payment_or_merchant_id": "x"}).status_code
        == 404
    )
    assert not acts_of_staff().exists()


def test_slip_lookup_reports_a_broken_bank_connection(live: Shop, bank: FakeScb, malee: Client) -> None:
    BankConnection.objects.update(credentials_sealed="of other keys")
    assert "its connection is not set up correctly" in shown(malee, live.merchant.id)
    assert bank.requests == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("audit_is_clean")
def test_slip_lookup_at_the_sandbox_bank_over_http(
    shop: Shop, malee: Client, live_server: Any, settings: Any
) -> None:
    settings.BASE_URL = live_server.url
    code = shop.qr_code()
    asked_for = {"qr_data": code["qr_data"], "scenario": "callback_lost"}
    assert shop.post("/sandbox/v1/payments", asked_for).status_code == 200
    paid = SandboxPayment.objects.get()
    slip = slip_payload(Slip(paid.payer_bank_code, paid.slip_reference))
    assert (
        BUTTON in malee.post(PAGE, {"text": slip, "claimed_payment_id": code["payment_id"]}).content.decode()
    )
    assert "the bank is being asked about it now" in ask(malee, code["payment_id"])
    assert sweep(0) == 1
    assert f"It paid payment {code['payment_id']}" in malee.post(PAGE, {"text": slip}).content.decode()
