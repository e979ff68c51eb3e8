"""The sandbox bank's adapter before the bank's own doors, over real HTTP."""

from datetime import timedelta
from typing import Any

import pytest

import banks
from banks.base import InquiryFailed, InquiryRequest, ReportedTransaction
from banks.sandbox import SandboxBank
from core import clock
from core.slips import Slip
from sandbox import services
from tests.sandbox.conftest import payload

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_inquiry_finds_payment_without_callback(live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url
    now = clock.now()
    question = InquiryRequest(
        biller_id="010555000000001",
        reference1="ABCDEFGHJ01234567890",
        amount=150_000,
        starts_at=now - timedelta(minutes=1),
        ends_at=now + timedelta(minutes=1),
    )
    assert banks.get("sandbox").inquire(question).transactions == ()
    order = services.plan(qr_data=payload(), scenario="callback_lost", now=now)
    payment = services.execute(order, now=now)
    assert banks.get("sandbox").inquire(question).transactions == (
        ReportedTransaction(
            bank_transaction_id=payment.id,
            kind="credit",
            biller_id="010555000000001",
            reference1="ABCDEFGHJ01234567890",
            reference2="SHOP7",
            reference3="T1",
            amount=150_000,
            paid_at=payment.paid_at,
            payer_name=payment.payer_name,
            payer_bank_code=payment.payer_bank_code,
            payer_account=payment.payer_account,
            slip_reference=payment.slip_reference,
        ),
    )


def test_slip_is_looked_up_over_http(live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url
    bank, now = SandboxBank(settings.SANDBOX_BANK_SECRET, live_server.url), clock.now()
    order = services.plan(qr_data=payload(), scenario="callback_lost", now=now)
    payment = services.execute(order, now=now)
    shown = bank.look_up_slip(Slip(payment.payer_bank_code, payment.slip_reference))
    assert shown is not None
    assert (shown.amount, shown.transferred_at, shown.reference1) == (
        150_000,
        payment.paid_at,
        "ABCDEFGHJ01234567890",
    )
    assert bank.look_up_slip(Slip(payment.payer_bank_code, "A1")) is None


def test_wrong_secret_is_refused_over_http(live_server: Any) -> None:
    now = clock.now()
    question = InquiryRequest("010555000000001", "ABC", 100, now, now)
    with pytest.raises(InquiryFailed, match="401"):
        SandboxBank("another secret", live_server.url).inquire(question)
