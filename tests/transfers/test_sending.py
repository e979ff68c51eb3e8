"""Sending transfers, from queued to a final status."""

from datetime import timedelta

import pytest

from banks import TransferResult
from core import clock
from tests.transfers.builders import FakeHandler, Serving, an_order, pass_time, queue, queued, send_due
from transfers import services
from transfers.models import TransferState

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


@pytest.mark.slow
def test_order_is_sent_once_and_inquired_until_final(handler: FakeHandler, served_by: Serving) -> None:
    answers = [TransferResult("processing"), TransferResult("unknown"), TransferResult("succeeded", "b-1")]
    bank = served_by(inquiries=answers)
    transfer = queued()
    for _ in range(5):
        send_due(handler)
        pass_time()
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired)) == ([transfer.id], 3)
    assert (transfer.state, transfer.bank_reference, transfer.failure_code) == ("succeeded", "b-1", "")
    assert handler.submitted == [transfer.id]
    assert handler.completed == [(transfer.id, TransferResult("succeeded", "b-1"))]


@pytest.mark.parametrize(
    ("result", "state", "code"),
    [
        (TransferResult("succeeded", "b-1"), TransferState.SUCCEEDED, ""),
        (TransferResult("failed", "b-1", "invalid_account"), TransferState.FAILED, "invalid_account"),
        (TransferResult("failed"), TransferState.FAILED, "rejected_by_bank"),
    ],
)
def test_final_answer_to_a_submission_completes_the_transfer(
    handler: FakeHandler, served_by: Serving, result: TransferResult, state: TransferState, code: str
) -> None:
    served_by(sends=[result])
    transfer = queued()
    send_due(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.failure_code, transfer.lease_until) == (state, code, None)
    assert handler.completed == [(transfer.id, TransferResult(result.status, result.reference, code))]


@pytest.mark.slow
def test_order_that_never_reached_the_bank_is_sent_again(handler: FakeHandler, served_by: Serving) -> None:
    not_sent = TransferResult("not_sent")
    bank = served_by(sends=[not_sent, not_sent, TransferResult("succeeded")])
    transfer = queued()
    for _ in range(3):
        send_due(handler)
        assert send_due(handler) == 0
        pass_time(6)
    transfer.refresh_from_db()
    assert (len(bank.sent), bank.inquired, transfer.state) == (3, [], TransferState.SUCCEEDED)
    assert (len(handler.submitted), handler.statuses) == (3, ["succeeded"])


@pytest.mark.slow
def test_inquiry_that_was_not_sent_causes_no_second_submission(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank = served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("not_sent")])
    transfer = queued()
    for _ in range(4):
        send_due(handler)
        pass_time()
    transfer.refresh_from_db()
    assert (len(bank.sent), len(bank.inquired), transfer.state) == (1, 3, TransferState.SUBMITTED)


def test_canceled_order_is_never_sent(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    transfer = queued()
    services.cancel(transfer.id, now=clock.now())
    pass_time()
    assert send_due(handler) == 0
    assert (bank.sent, handler.submitted, handler.completed) == ([], [], [])


def test_submitted_order_cannot_be_canceled(handler: FakeHandler, served_by: Serving) -> None:
    served_by()
    transfer = queued()
    send_due(handler)
    with pytest.raises(services.AlreadySubmitted):
        services.cancel(transfer.id, now=clock.now())


def test_orders_not_due_or_of_another_purpose_are_not_sent(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    queued(at=clock.now() + timedelta(minutes=1))
    queued("refund")
    assert send_due(handler) == 0
    assert bank.sent == []


@pytest.mark.parametrize(
    ("amounts", "is_match"), [([150_000], True), ([40_000, 110_000], True), ([40_000], False), ([], False)]
)
def test_void_order_matches_a_reversal_only_of_the_whole_amount(amounts: list[int], is_match: bool) -> None:
    for amount in amounts:
        no_account = {"bank_code": "", "account": "", "account_name": ""}
        order = an_order("refund", amount=amount, charge_id="T1", **no_account)
        queue(order, route="bank:bbl")
    found = services.matching_voids(["T1", ""], route="bank:bbl", amount=150_000)
    assert len(found) == (len(amounts) if is_match else 0)
