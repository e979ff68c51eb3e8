import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from banks import Notice, get
from core import clock
from sandbox import services
from sandbox.models import SandboxCall, SandboxPayment

pytestmark = pytest.mark.django_db
Paying = Callable[..., dict[str, Any]]


def carried_out(order: dict[str, Any]) -> SandboxPayment:
    now = clock.now()
    fields: dict[str, Any] = {"scenario": "paid", "now": now}
    return services.carry_out(services.order(**fields | order), now=now)


def told(payment: SandboxPayment) -> list[dict[str, Any]]:
    return [json.loads(call.body) for call in payment.calls.order_by("due_at")]


def test_paid_tells_once_that_the_money_came(paying: Paying) -> None:
    paid_at = datetime(2026, 11, 21, 3, 4, 5, 123_000, UTC)
    payment = carried_out(paying(paid_at=paid_at, now=paid_at))
    (notice,) = told(payment)
    assert notice["amount"] == "1500.00"
    assert notice["paid_at"] == "2026-11-21T10:04:05.123+07:00"
    assert notice["transaction_id"] == payment.id


def test_what_the_bank_tells_is_what_its_adapter_reads(paying: Paying) -> None:
    payment = carried_out(paying())
    notice = get("sandbox").parse_notice(payment.calls.get().body.encode())
    assert isinstance(notice, Notice)
    assert (notice.kind, notice.amount, notice.paid_at) == ("credit", 150_000, payment.paid_at)
    assert (notice.biller_id, notice.reference1) == ("010555000000001", "ABCDEFGHJ01234567890")
    assert (notice.reference2, notice.reference3) == ("SHOP7", "T1")
    assert (notice.payer_name, notice.payer_account) == (payment.payer_name, payment.payer_account)


def test_declined_tells_of_a_decline(paying: Paying) -> None:
    (notice,) = told(carried_out(paying(scenario="declined")))
    assert notice["type"] == "decline"


def test_callback_repeated_tells_the_same_three_times(paying: Paying) -> None:
    first, second, third = told(carried_out(paying(scenario="callback_repeated")))
    assert first == second == third


def test_unknown_reference_pays_with_another_reference_each_time(paying: Paying) -> None:
    notices = [told(carried_out(paying(scenario="unknown_reference")))[0] for _ in range(2)]
    references = {notice["reference1"] for notice in notices}
    assert len(references | {"ABCDEFGHJ01234567890"}) == 3


def test_a_report_may_come_later_than_the_payment(paying: Paying) -> None:
    report_at = clock.now() + timedelta(minutes=16)
    payment = carried_out(paying(report_at=report_at))
    assert payment.paid_at < report_at
    assert SandboxCall.objects.get(payment=payment).due_at == report_at
