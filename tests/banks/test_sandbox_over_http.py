"""The sandbox bank's adapter before the bank's own doors, over real HTTP."""

from datetime import timedelta
from typing import Any

import pytest

import banks
from banks.base import NotAnswered, Notice, Question
from banks.sandbox import SandboxBank
from core import clock
from core.slips import Slip
from sandbox import services
from tests.sandbox.conftest import payload

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_what_no_callback_tells_is_found_by_asking(live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url
    now = clock.now()
    question = Question(
        biller_id="010555000000001",
        reference1="ABCDEFGHJ01234567890",
        amount=150_000,
        since=now - timedelta(minutes=1),
        until=now + timedelta(minutes=1),
    )
    assert banks.get("sandbox").inquire(question).notices == ()
    order = services.order(qr_data=payload(), scenario="callback_lost", now=now)
    payment = services.carry_out(order, now=now)
    assert banks.get("sandbox").inquire(question).notices == (
        Notice(
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


def test_a_slip_is_looked_up_by_asking(live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url
    bank, now = SandboxBank(settings.SANDBOX_BANK_SECRET, live_server.url), clock.now()
    order = services.order(qr_data=payload(), scenario="callback_lost", now=now)
    payment = services.carry_out(order, now=now)
    told = bank.transfer(Slip(payment.payer_bank_code, payment.slip_reference))
    assert told is not None
    assert (told.amount, told.at, told.reference1) == (150_000, payment.paid_at, "ABCDEFGHJ01234567890")
    assert bank.transfer(Slip(payment.payer_bank_code, "A1")) is None


def test_a_wrong_secret_opens_no_door(live_server: Any) -> None:
    now = clock.now()
    question = Question("010555000000001", "ABC", 100, now, now)
    with pytest.raises(NotAnswered, match="401"):
        SandboxBank("another secret", live_server.url).inquire(question)
