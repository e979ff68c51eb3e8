"""Who did what, by real parts: threads of the web server, a worker, the sandbox bank over HTTP."""

from typing import Any

import pytest

from merchants import secrets
from tests.flows.conftest import Till
from tests.stack import wait_until

pytestmark = pytest.mark.slow


def told(till: Till, code: dict[str, Any], type: str) -> list[dict[str, Any]]:
    """The entries of a type, the oldest first."""
    timeline = till.get(f"/v1/payments/{code['payment_id']}/timeline?limit=100")["timeline"]
    return [entry for entry in reversed(timeline) if entry["type"] == type]


def test_the_shop_the_bank_and_the_clock_each_answer_for_their_own(till: Till) -> None:
    code = till.qr_code()
    till.pay(code)
    till.wait_for_status(code, "succeeded")
    refund = till.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 50_000})
    wait_until(lambda: till.get(f"/v1/refunds/{refund['refund_id']}")["status"] == "completed", 20)
    (born,), (notice,), (paid,) = (
        told(till, code, type) for type in ("payment.pending", "bank.notice", "payment.succeeded")
    )
    assert born["actor"] == f"key:{secrets.public_id(till.secret_key)}"
    assert notice["actor"] == paid["actor"] == "bank:sandbox"
    assert notice["request_id"] == paid["request_id"] != born["request_id"]
    (completed,) = told(till, code, "refund.completed")
    assert completed["actor"] == "clock" and completed["request_id"]


def test_what_an_inquiry_found_was_told_by_the_bank_and_noticed_by_the_clock(till: Till) -> None:
    code = till.qr_code()
    till.pay(code, "callback_lost")
    till.wait_for_status(code, "succeeded", seconds=30)
    (paid,), (notice,) = (told(till, code, type) for type in ("payment.succeeded", "bank.notice"))
    assert (paid["actor"], notice["actor"]) == ("clock", "bank:sandbox")
    assert notice["details"]["source"] == "inquiry"
    asked = [entry["details"]["said"] for entry in told(till, code, "bank.inquiry")]
    assert asked[-1] == "found"
    assert till.get(f"/v1/payments/{code['payment_id']}/timeline")["witnesses"] == ["inquiry"]
