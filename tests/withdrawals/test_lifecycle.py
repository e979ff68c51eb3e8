"""Withdrawals from pending to their final status: API object, events, ledger and balance."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import ReportedTransfer, TransferResult
from core import clock
from ledger.models import Journal
from tests.conftest import Shop
from tests.transfers.builders import Bank, pass_time
from tests.withdrawals.builders import (
    PATH,
    balance,
    event_data_of,
    events_of,
    fetch_withdrawal,
    send_due_withdrawals,
    sent_out,
    withdrawal_request,
    withdrawn,
)
from transfers import services as transfers
from withdrawals.services import TRANSFER_HANDLER
from withdrawals.tasks import run_due

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
PAID_IN = -150_000


def journal_types(withdrawal: dict[str, Any]) -> list[str]:
    happened = Journal.objects.filter(subject_id=withdrawal["withdrawal_id"]).order_by("id")
    return [str(type) for type in happened.values_list("type", flat=True)]


def cancel(shop: Shop, withdrawal: dict[str, Any], key: str | None = None) -> Any:
    return shop.post(f"{PATH}/{withdrawal['withdrawal_id']}/cancel", key=key)


def test_withdrawal_is_sent_inquired_and_succeeds(shop: Shop, served_by: Serving) -> None:
    bank = served_by()
    made = withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})
    run_due()
    assert fetch_withdrawal(shop, made)["status"] == "processing"
    assert balance(shop) == (50_000, 100_000)
    send_due_withdrawals(2)
    ended = fetch_withdrawal(shop, made)
    assert (ended["status"], ended["bank_reference"], ended["failure_code"]) == ("succeeded", "b-1", None)
    assert ended["completed_at"] == ended["updated_at"] > ended["created_at"]
    assert (len(bank.sent), len(bank.inquired)) == (1, 1)
    assert (balance(shop), sent_out()) == ((50_000, 0), PAID_IN + 100_000)
    assert journal_types(made) == ["withdrawal_reserved", "withdrawal_paid"]
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"]
    assert [body["data"]["status"] for body in event_data_of(made)] == ["pending", "processing", "succeeded"]
    assert event_data_of(made)[-1]["data"] == ended


@pytest.mark.parametrize("code", ["invalid_account", "rejected_by_bank"])
def test_withdrawal_rejected_by_the_bank_releases_the_money(
    shop: Shop, served_by: Serving, code: str
) -> None:
    served_by(sends=[TransferResult("failed", failure_code=code)])
    made = withdrawn(shop)
    send_due_withdrawals()
    ended = fetch_withdrawal(shop, made)
    assert (ended["status"], ended["failure_code"], ended["completed_at"]) == ("failed", code, None)
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert journal_types(made) == ["withdrawal_reserved", "withdrawal_released"]
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.failed"]
    assert event_data_of(made)[-1]["data"] == ended


def test_returned_withdrawal_credits_the_merchant(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop)
    send_due_withdrawals()
    arrived = fetch_withdrawal(shop, made)
    for _ in range(2):
        notification = ReportedTransfer(made["withdrawal_id"], "returned", "b-1", "account_closed")
        transfers.apply_notification(notification, TRANSFER_HANDLER, now=clock.now())
    ended = fetch_withdrawal(shop, made)
    assert (ended["status"], ended["failure_code"]) == ("failed", "returned_by_bank")
    assert ended["completed_at"] == arrived["completed_at"]
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert journal_types(made) == ["withdrawal_reserved", "withdrawal_paid", "withdrawal_returned"]
    assert events_of(made)[-2:] == ["withdrawal.succeeded", "withdrawal.failed"]


def test_return_reported_before_success_publishes_both_events(shop: Shop, served_by: Serving) -> None:
    served_by()
    made = withdrawn(shop)
    send_due_withdrawals()
    transfers.apply_notification(
        ReportedTransfer(made["withdrawal_id"], "returned", "b-1"), TRANSFER_HANDLER, now=clock.now()
    )
    assert fetch_withdrawal(shop, made)["failure_code"] == "returned_by_bank"
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert len(events_of(made)) == 4


def test_withdrawal_with_unknown_answer_is_inquired_and_never_sent_again(
    shop: Shop, served_by: Serving
) -> None:
    unknown = TransferResult("unknown")
    bank = served_by(
        sends=[unknown],
        inquiries=[unknown, TransferResult("not_sent"), unknown, TransferResult("succeeded", "b-1")],
    )
    made = withdrawn(shop)
    send_due_withdrawals(4)
    assert fetch_withdrawal(shop, made)["status"] == "processing"
    assert balance(shop) == (50_000, 100_000)
    pass_time()
    send_due_withdrawals()
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    assert (bank.sent, len(bank.inquired)) == ([made["withdrawal_id"]], 4)


def test_withdrawal_is_sent_again_after_the_bank_was_unreachable(shop: Shop, served_by: Serving) -> None:
    bank = served_by(
        sends=[TransferResult("not_sent"), TransferResult("not_sent"), TransferResult("succeeded", "b-1")]
    )
    made = withdrawn(shop)
    send_due_withdrawals(2)
    assert cancel(shop, made).json()["error"]["code"] == "withdrawal_not_cancelable"
    send_due_withdrawals(3)
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    assert len(bank.sent) == 3
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"]


def test_canceled_withdrawal_is_never_sent(shop: Shop, served_by: Serving) -> None:
    bank = served_by()
    made = withdrawn(shop)
    first, again = (cancel(shop, made, key="cancel") for _ in range(2))
    assert (first.json()["status"], first.json()["failure_code"]) == ("canceled", None)
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    send_due_withdrawals(2)
    assert (bank.sent, fetch_withdrawal(shop, made)) == ([], first.json())
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert journal_types(made) == ["withdrawal_reserved", "withdrawal_released"]
    assert events_of(made) == ["withdrawal.pending"]


@pytest.mark.parametrize(
    "result", [TransferResult("processing"), TransferResult("succeeded"), TransferResult("failed")]
)
def test_submitted_withdrawal_cannot_be_canceled(
    shop: Shop, served_by: Serving, result: TransferResult
) -> None:
    served_by(sends=[result])
    made = withdrawn(shop)
    send_due_withdrawals()
    before = fetch_withdrawal(shop, made)
    for answer in (cancel(shop, made), cancel(shop, made)):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "withdrawal_not_cancelable")
        assert before["status"] in error["message"]
    assert fetch_withdrawal(shop, made) == before


def test_canceled_withdrawal_cannot_be_canceled_again(shop: Shop) -> None:
    made = withdrawn(shop)
    assert cancel(shop, made).status_code == 200
    assert cancel(shop, made).json()["error"]["code"] == "withdrawal_not_cancelable"
    assert balance(shop) == (150_000, 0)


def test_money_of_a_failed_withdrawal_can_be_withdrawn_again(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[TransferResult("failed"), TransferResult("succeeded", "b-2")])
    withdrawn(shop, amount=150_000)
    assert shop.post(PATH, withdrawal_request(amount=100)).status_code == 402
    send_due_withdrawals()
    made = withdrawn(shop, amount=150_000)
    send_due_withdrawals()
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    assert (balance(shop), sent_out()) == ((0, 0), 0)


def test_failed_completion_of_a_withdrawal_is_retried(
    shop: Shop, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = served_by(
        sends=[TransferResult("succeeded", "b-1")], inquiries=[TransferResult("succeeded", "b-1")]
    )
    made = withdrawn(shop)
    with monkeypatch.context() as broken:
        broken.setattr("withdrawals.services.ledger.pay_out", lambda **_: 1 / 0)
        send_due_withdrawals()
    assert (fetch_withdrawal(shop, made)["status"], balance(shop)) == ("processing", (50_000, 100_000))
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed"]
    pass_time()
    send_due_withdrawals()
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    assert (len(bank.sent), sent_out()) == (1, PAID_IN + 100_000)
    assert len(events_of(made)) == 3
