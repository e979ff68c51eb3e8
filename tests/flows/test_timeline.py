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
    wait_until(lambda: till.get(f"/v1/refunds/{refund['refund_id']}")["status"] == "completed", 60)
    (born,), (notice,), (paid,) = (
        told(till, code, type) for type in ("payment.pending", "bank.notice", "payment.succeeded")
    )
    assert born["actor"] == f"key:{secrets.public_id(till.secret_key)}"
    assert notice["actor"] == paid["actor"] == "bank:sandbox"
    assert notice["request_id"] == paid["request_id"] != born["request_id"]
    for type in ("refund.told", "refund.completed"):
        *_, entry = told(till, code, type)
        assert entry["actor"] == "clock" and entry["request_id"]


def test_what_an_inquiry_found_was_told_by_the_bank_and_noticed_by_the_clock(till: Till) -> None:
    code = till.qr_code()
    till.pay(code, "callback_lost")
    till.wait_for_status(code, "succeeded", seconds=60)
    (paid,), (notice,) = (told(till, code, type) for type in ("payment.succeeded", "bank.notice"))
    assert (paid["actor"], notice["actor"]) == ("clock", "bank:sandbox")
    assert notice["details"]["source"] == "inquiry"
    # That it was asked is written down after what it said has been judged.
    wait_until(
        lambda: any(each["details"]["said"] == "found" for each in told(till, code, "bank.inquiry")), 60
    )
    *_, asked = told(till, code, "bank.inquiry")
    assert asked["actor"] == "clock"
    assert asked["request_id"] == notice["request_id"] == paid["request_id"] is not None
    assert till.get(f"/v1/payments/{code['payment_id']}/timeline")["witnesses"] == ["inquiry"]
