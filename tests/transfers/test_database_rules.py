"""Rules of the database for transfers, attacked by plain SQL."""

from itertools import product
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from core import clock
from core.database.state_machines import IllegalTransition
from tests.transfers.builders import an_order, queue, queued
from transfers.models import UNFINISHED_STATES, Transfer, TransferState

pytestmark = pytest.mark.django_db
STEPS = {
    TransferState.HELD: [],
    TransferState.QUEUED: [],
    TransferState.SUBMITTED: [TransferState.SUBMITTED],
    TransferState.SUCCEEDED: [TransferState.SUBMITTED, TransferState.SUCCEEDED],
    TransferState.FAILED: [TransferState.SUBMITTED, TransferState.FAILED],
    TransferState.RETURNED: [TransferState.SUBMITTED, TransferState.SUCCEEDED, TransferState.RETURNED],
    TransferState.CANCELED: [TransferState.CANCELED],
}


def fields_of(state: TransferState) -> dict[str, Any]:
    """The columns that a state needs."""
    now, fields = clock.now(), dict[str, Any](completed_at=None, failure_code="")
    if state == TransferState.SUBMITTED:
        fields["submitted_at"] = now
    if state not in UNFINISHED_STATES:
        fields["completed_at"] = now
    if state in (TransferState.FAILED, TransferState.RETURNED):
        fields["failure_code"] = "rejected_by_bank"
    return fields


def transfer_in(state: TransferState) -> Transfer:
    order = an_order()
    transfer = queue(order, held=[order.order_id] if state == TransferState.HELD else [])
    for step in STEPS[state]:
        transfer.transition(step, **fields_of(step))
    return transfer


def run(sql: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, values)


def update(transfer: Transfer, assignment: str, *values: Any) -> None:
    run(f"UPDATE transfers_transfer SET {assignment} WHERE id = %s", *values, transfer.id)


@pytest.mark.parametrize(
    ("start", "target"), [pair for pair in product(TransferState, TransferState) if pair[0] != pair[1]]
)
def test_code_and_database_allow_the_same_transfer_transitions(
    start: TransferState, target: TransferState
) -> None:
    transfer = transfer_in(start)
    fields = fields_of(target)
    names = ", ".join(f"{name} = %s" for name in fields)
    if target in Transfer.TRANSITIONS.get(start, set()):
        update(transfer, f"state = '{target}', {names}", *fields.values())
        return
    with pytest.raises(DatabaseError, match="cannot change from"):
        update(transfer, f"state = '{target}', {names}", *fields.values())
    with pytest.raises(IllegalTransition):
        transfer.transition(target, **fields)


def test_inquired_transfer_cannot_be_queued_again() -> None:
    transfer = transfer_in(TransferState.SUBMITTED)
    update(transfer, "inquiries = 1")
    with pytest.raises(DatabaseError, match="not sent again"):
        update(transfer, "state = 'queued'")
    with pytest.raises(DatabaseError, match="not sent again"):
        update(transfer, "state = 'queued', inquiries = 0")
    with pytest.raises(DatabaseError, match="only grows"):
        update(transfer, "inquiries = 0")


@pytest.mark.parametrize(
    "attack",
    [
        "amount = amount + 1",
        "account_sealed = 'another'",
        "account_name = 'SOMEBODY ELSE'",
        "bank_code = '004'",
        "route = 'bank:other'",
        "purpose = 'refund'",
        "charge_id = 'chrg_1'",
        "id = 'wd_000000000000000000000000000'",
        "created_at = created_at - interval '1 day'",
        "state = 'lost'",
        "state = 'succeeded', completed_at = now()",
        "state = 'submitted'",
        "completed_at = now()",
        "failure_code = 'rejected_by_bank'",
    ],
)
def test_database_refuses_changed_order_and_inconsistent_state(attack: str) -> None:
    transfer = transfer_in(TransferState.QUEUED)
    with pytest.raises(DatabaseError):
        update(transfer, attack)


@pytest.mark.parametrize("attack", ["DELETE FROM transfers_transfer", "TRUNCATE transfers_transfer CASCADE"])
def test_database_refuses_to_delete_a_transfer(attack: str) -> None:
    transfer_in(TransferState.FAILED)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    with pytest.raises(DatabaseError, match="never deleted"):
        run(attack)


@pytest.mark.parametrize(
    "state", [state for state in TransferState if state not in (TransferState.HELD, TransferState.QUEUED)]
)
def test_new_transfer_is_held_or_queued(state: TransferState) -> None:
    now = clock.now()
    transfer = queued()
    transfer.pk, transfer.state, transfer.submitted_at = "wd_000000000000000000000000000", state, now
    for name, value in (fields_of(state) | {"submitted_at": now}).items():
        setattr(transfer, name, value)
    with pytest.raises(DatabaseError, match="cannot begin"), transaction.atomic():
        transfer.save(force_insert=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": 0},
        {"amount": -1},
        {"bank_code": ""},
        {"account": ""},
        {"charge_id": "chrg_1"},
        {"charge_id": "chrg_1", "bank_code": "", "account": ""},
    ],
)
def test_inconsistent_transfer_is_not_stored(fields: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        queued("withdrawal", **fields)


def test_card_refund_has_a_charge_and_no_account() -> None:
    transfer = queued("refund", charge_id="chrg_1", bank_code="", account="", account_name="")
    assert (transfer.order.charge_id, transfer.order.account) == ("chrg_1", "")


def test_transfer_account_is_encrypted_and_not_in_repr() -> None:
    transfer = queued()
    assert "4051234567" not in transfer.account_sealed
    assert transfer.order.account == "4051234567"
    assert "4051234567" not in repr(transfer.order)
