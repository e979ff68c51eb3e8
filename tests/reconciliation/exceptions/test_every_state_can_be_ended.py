"""Every state of outgoing money that is not final has an action in the console that ends it for good.

The states come from the models: a new one without an ending fails these tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, transaction
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from banks import TransferResult
from core import clock
from reconciliation.matching import order_completion
from reconciliation.models import Return, ReturnStatus
from refunds import models as refunds
from refunds.completion import TRANSFER_HANDLER
from refunds.destinations import Destination
from refunds.models import Refund
from tests.approvals.builders import click
from tests.concurrency import run_concurrently
from tests.reconciliation.builders import Seller, decide
from tests.refunds.builders import PAYEE
from tests.staff_acts import run_act
from tests.transfers.builders import Bank
from tests.withdrawals.builders import withdrawn
from transfers import services as transfers
from transfers.models import Transfer, TransferState
from transfers.schedule import OVERDUE_AFTER
from withdrawals import models as withdrawals, services as withdrawal_services
from withdrawals.models import Withdrawal

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NOT_SENT, UNKNOWN = TransferResult("not_sent"), TransferResult("unknown")
Key = tuple[str, str, str]


@dataclass
class Stage:
    """Builds outgoing money in each state: a shop with funds, and a bank with given answers."""

    seller: Seller
    serve: Serving
    settings: Settings

    def withdrawal(self, *sends: TransferResult) -> str:
        self.serve(sends=list(sends) or [UNKNOWN], inquiries=[UNKNOWN])
        self.seller.paid()
        made = withdrawn(self.seller.shop)
        if sends:
            transfers.run_due("withdrawal", withdrawal_services.TRANSFER_HANDLER, now=clock.now)
        return str(made["withdrawal_id"])

    def refund(self, *sends: TransferResult) -> str:
        self.serve(sends=list(sends) or [UNKNOWN], inquiries=[UNKNOWN])
        made = self.seller.refund(self.seller.paid(), amount=100_000, destination=PAYEE)
        if sends:
            transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
        return str(made["refund_id"])

    def sent_back(self, *sends: TransferResult) -> str:
        self.serve(sends=list(sends) or [UNKNOWN], inquiries=[UNKNOWN])
        made = decide("send_back", self.seller.unmatched())
        if sends:
            order_completion.run_due_returns(now=clock.now)
        return str(made.id)

    def refund_without_destination(self) -> str:
        code = self.seller.shop.qr_code()
        self.seller.bank.notify(code, payer_bank_code="999")
        return str(self.seller.refund(code["payment_id"])["refund_id"])

    def held_withdrawal(self) -> str:
        self.settings.APPROVAL_ITEM_LIMIT = 50_000
        return self.withdrawal()

    def held_refund(self) -> str:
        self.settings.APPROVAL_ITEM_LIMIT = 50_000
        return self.refund()

    def held_return(self) -> str:
        self.settings.APPROVAL_ITEM_LIMIT = 50_000
        destination = Destination("004", "4051234567", "Somying")
        return str(decide("send_back", self.seller.unmatched(), destination=destination).id)

    def held_return_by_hand(self) -> str:
        self.settings.APPROVAL_ITEM_LIMIT = 50_000
        return str(decide("record_manual_return", self.seller.unmatched(), bank_reference="counter 7").id)


@dataclass(frozen=True)
class Ending:
    """How money reaches a state, and the console actions that end it: (list, action)."""

    reach: Callable[[Stage], str]
    actions: list[tuple[str, str]]


GIVE_UP, NEVER_ARRIVED = ("transfer", "cancel"), ("transfer", "never-arrived")
REJECT = ("approval", "reject")
ENDINGS: dict[Key, list[Ending]] = {
    ("withdrawal", "pending", "held"): [Ending(Stage.held_withdrawal, [REJECT, ("withdrawal", "cancel")])],
    ("refund", "pending", "held"): [Ending(Stage.held_refund, [REJECT, ("refund", "cancel")])],
    ("return", "pending", "held"): [Ending(Stage.held_return, [REJECT])],
    ("return", "pending", ""): [Ending(Stage.held_return_by_hand, [REJECT])],
    ("withdrawal", "pending", "queued"): [Ending(Stage.withdrawal, [("withdrawal", "cancel"), GIVE_UP])],
    ("withdrawal", "processing", "queued"): [Ending(lambda stage: stage.withdrawal(NOT_SENT), [GIVE_UP])],
    ("withdrawal", "processing", "submitted"): [
        Ending(lambda stage: stage.withdrawal(UNKNOWN), [NEVER_ARRIVED, ("transfer", "arrived")])
    ],
    ("refund", "pending", ""): [Ending(Stage.refund_without_destination, [("refund", "cancel")])],
    ("refund", "pending", "queued"): [
        Ending(Stage.refund, [("refund", "cancel"), GIVE_UP]),
        Ending(lambda stage: stage.refund(NOT_SENT), [("refund", "cancel"), GIVE_UP]),
    ],
    ("refund", "pending", "submitted"): [
        Ending(lambda stage: stage.refund(UNKNOWN), [NEVER_ARRIVED, ("transfer", "arrived")])
    ],
    ("return", "pending", "queued"): [
        Ending(Stage.sent_back, [GIVE_UP]),
        Ending(lambda stage: stage.sent_back(NOT_SENT), [GIVE_UP]),
    ],
    ("return", "pending", "submitted"): [
        Ending(lambda stage: stage.sent_back(UNKNOWN), [NEVER_ARRIVED, ("transfer", "arrived")])
    ],
}
# One commit creates a withdrawal and its transfer; another one submits both.
IMPOSSIBLE = {
    ("withdrawal", "pending", ""),
    ("withdrawal", "pending", "submitted"),
    ("withdrawal", "processing", ""),
    ("withdrawal", "processing", "held"),
}
FINAL_ORDERS = {TransferState.SUCCEEDED, TransferState.FAILED, TransferState.RETURNED, TransferState.CANCELED}
FINAL_OWNERS: dict[str, set[Any]] = {
    "withdrawal": {
        withdrawals.WithdrawalStatus.SUCCEEDED,
        withdrawals.WithdrawalStatus.FAILED,
        withdrawals.WithdrawalStatus.CANCELED,
    },
    "refund": {refunds.RefundStatus.COMPLETED, refunds.RefundStatus.FAILED, refunds.RefundStatus.CANCELED},
    "return": {ReturnStatus.COMPLETED, ReturnStatus.FAILED, ReturnStatus.CANCELED},
}
STATUSES: dict[str, Any] = {
    "withdrawal": withdrawals.WithdrawalStatus, "refund": refunds.RefundStatus, "return": ReturnStatus,
}  # fmt: skip
MODELS: dict[str, Any] = {"transfer": Transfer, "withdrawal": Withdrawal, "refund": Refund, "return": Return}
CASES = [
    pytest.param(key, ending.reach, action, id=f"{'-'.join(key)}-{number}-{action[1]}")
    for key, endings in ENDINGS.items()
    for number, ending in enumerate(endings)
    for action in ending.actions
]


@pytest.fixture
def stage(seller: Seller, served_by: Serving, settings: Settings) -> Stage:
    return Stage(seller, served_by, settings)


@pytest.fixture
def staff_client(db: None) -> Client:
    user = User.objects.create_user("somsri", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    client = Client()
    client.force_login(user)
    return client


def open_keys() -> set[Key]:
    """All pairs of open states of a withdrawal, refund or return and of its transfer."""
    open_orders = ["", *(set(TransferState) - FINAL_ORDERS)]
    return {
        (purpose, str(status), str(state))
        for purpose, statuses in STATUSES.items()
        for status, state in product(set(statuses) - FINAL_OWNERS[purpose], open_orders)
    }


def test_every_unfinished_state_has_a_staff_action_to_end_it() -> None:
    purposes = {value for value, _ in Transfer._meta.get_field("purpose").choices or ()}
    assert purposes == set(STATUSES)
    assert open_keys() == set(ENDINGS) | IMPOSSIBLE


@pytest.mark.parametrize(("key", "reach", "action"), CASES)
def test_order_ended_in_the_console_is_never_sent(
    stage: Stage, staff_client: Client, key: Key, reach: Callable[[Stage], str], action: tuple[str, str]
) -> None:
    order_id = reach(stage)
    assert state_of(key[0], order_id) == key
    Transfer.objects.update(submitted_at=F("submitted_at") - OVERDUE_AFTER)
    if action == REJECT:
        click(staff_client, "reject", order_id)
    else:
        run_act(staff_client, MODELS[action[0]], order_id, action[1])
    _, status, state = state_of(key[0], order_id)
    assert status in FINAL_OWNERS[key[0]]
    assert state in {"", *FINAL_ORDERS}
    assert stage.seller.funds()["reserved"] == 0
    bank = stage.serve(sends=[TransferResult("succeeded", "b-1")])
    carry_out_everything()
    assert bank.sent == []


def test_withdrawal_of_an_unreachable_bank_fails_and_releases_the_money(
    stage: Stage, staff_client: Client
) -> None:
    order_id = stage.withdrawal(NOT_SENT)
    assert stage.seller.funds() == {"available": 50_000, "reserved": 100_000}
    assert "done." in run_act(staff_client, Transfer, order_id, "cancel")
    reported = stage.seller.shop.get(f"/v1/withdrawals/{order_id}").json()
    assert (reported["status"], reported["failure_code"]) == ("failed", "bank_unreachable")
    assert stage.seller.funds() == {"available": 150_000, "reserved": 0}
    step = Transfer.objects.get().events.latest("id")
    assert (step.type, step.actor) == ("canceled", "staff:somsri")


@pytest.mark.parametrize("purpose", ["withdrawal", "refund", "sent_back"])
def test_order_submitted_to_the_bank_cannot_be_canceled(stage: Stage, purpose: str) -> None:
    order_id = getattr(stage, purpose)(UNKNOWN)
    with pytest.raises(transfers.AlreadySubmitted):
        order_completion.cancel_unsent(order_id, now=clock.now())
    assert Transfer.objects.get().state == TransferState.SUBMITTED


def test_database_refuses_to_release_money_of_an_unfinished_order(stage: Stage) -> None:
    order_id = stage.withdrawal(NOT_SENT)
    with pytest.raises(DatabaseError, match="may have the order"), transaction.atomic():
        Withdrawal.objects.filter(pk=order_id).update(status="failed", failure_code="bank_unreachable")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("purpose", ["withdrawal", "refund", "sent_back"])
def test_concurrent_cancel_and_send_of_an_order_have_one_outcome(stage: Stage, purpose: str) -> None:
    order_id = getattr(stage, purpose)(NOT_SENT)
    Transfer.objects.update(due_at=clock.now())
    bank = stage.serve(sends=[TransferResult("succeeded", "b-1")])

    def give_up() -> bool:
        try:
            order_completion.cancel_unsent(order_id, now=clock.now())
        except transfers.AlreadySubmitted:
            return False
        return True

    given_up, _ = run_concurrently(give_up, carry_out_everything)
    assert len(bank.sent) == (0 if given_up else 1)
    assert Transfer.objects.get().state == ("canceled" if given_up else "succeeded")


def state_of(purpose: str, order_id: str) -> Key:
    status = MODELS[purpose].objects.values_list("status", flat=True).get(pk=order_id)
    order = Transfer.objects.filter(pk=order_id).first()
    return purpose, str(status), str(order.state) if order else ""


def carry_out_everything() -> None:
    Transfer.objects.filter(lease_until=None).update(due_at=clock.now())
    transfers.run_due("withdrawal", withdrawal_services.TRANSFER_HANDLER, now=clock.now)
    transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
    order_completion.run_due_returns(now=clock.now)
