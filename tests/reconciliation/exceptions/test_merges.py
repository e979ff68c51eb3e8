"""Staff merge two reports of one bank transaction, and reopen a wrong merge."""

from datetime import datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client

from audit_trail.acts import ActRefused
from core import clock
from core.clock import BANGKOK
from reconciliation.exceptions import resolutions, summaries
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.models import BankTransaction, ReconciliationException, Resolution, ResolutionType
from tests.audit import differences
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    NOTE,
    Seller,
    decide,
    exception_url,
    get_page,
    postings_of,
    reversal_of,
    state_of,
    suspense,
)
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.sqlstates import sqlstate
from tests.staff_acts import act_form
from tests.timeline.builders import types

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean", "old_codes")]
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
NOON = datetime.combine(clock.now().astimezone(BANGKOK).date(), time(), BANGKOK) - DAY / 2
CHECK_VIOLATION = "23514"


@pytest.fixture
def code(seller: Seller) -> dict[str, Any]:
    made: dict[str, Any] = seller.shop.qr_code()
    return made


@pytest.fixture
def held(seller: Seller, code: dict[str, Any]) -> BankTransaction:
    """A callback about money that a statement line of the day before reported and that paid the code."""
    import_file(bot_file(credit_line(code, NOON - DAY)))
    return seller.report(code, paid_at=NOON)


def press(client: Client, bank_transaction: BankTransaction, slug: str) -> str:
    answer = client.post(
        f"{EXCEPTIONS_URL}{bank_transaction.id}/do/{slug}/", act_form(reason=NOTE), follow=True
    )
    assert answer.status_code == 200
    return answer.content.decode()


def merged(bank_transaction: BankTransaction) -> Resolution:
    made = decide("merge", bank_transaction)
    assert isinstance(made, Resolution)
    return made


def test_probable_duplicate_is_merged_with_actor_and_note(
    seller: Seller, held: BankTransaction, malee: Client
) -> None:
    paid = BankTransaction.objects.get(match_result="applied")
    assert suspense() == 150_000
    assert paid.id in get_page(malee, f"{EXCEPTIONS_URL}{held.id}/do/merge/")
    press(malee, held, "merge")
    assert (state_of(held), suspense()) == (("duplicate", "merged"), 0)
    assert not ReconciliationException.objects.exists()
    made = Resolution.objects.get()
    assert (made.type, made.actor, made.note, made.merged_into_id) == ("merged", "staff:malee", NOTE, paid.id)
    assert postings_of(held.id) == [("held", 150_000), ("merged", 150_000)]
    assert state_of(paid) == ("applied", "")
    assert types(seller.shop, str(paid.payment_id))[-1] == "staff.merged"
    page = get_page(malee, exception_url(held.id))
    assert "Merged into" in page and paid.id not in get_page(malee, EXCEPTIONS_URL)
    shown = seller.shop.get(f"/v1/payments/{paid.payment_id}").json()
    assert [each["status"] for each in shown["exceptions"]] == ["merged"]


def test_second_merge_of_an_exception_changes_nothing(held: BankTransaction) -> None:
    merged(held)
    with pytest.raises(AlreadyResolved, match="malee has already resolved this"):
        merged(held)
    assert suspense() == 0


def test_different_bank_transaction_cannot_be_merged(seller: Seller) -> None:
    for other in (seller.duplicate(), seller.unmatched()):
        assert ResolutionType.MERGED not in resolutions.allowed_types(other)
        with pytest.raises(ActRefused, match="a probable duplicate of another"):
            merged(other)
        refusal = sqlstate(
            (
                "UPDATE reconciliation_banktransaction SET resolution_state = 'merged', resolved_at = now() "
                "WHERE id = %s"
            ),
            other.id,
        )
        assert refusal == CHECK_VIOLATION


def test_merge_leaves_the_other_exception_resolvable(seller: Seller) -> None:
    code, late = seller.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
    import_file(bot_file(credit_line(code, late + DAY)))
    line, callback = BankTransaction.objects.get(), seller.report(code, paid_at=late)
    assert [resolutions.allowed_types(each) - {ResolutionType.CONFIRMED} for each in (line, callback)] == [
        {ResolutionType.MERGED}
    ] * 2
    merged(line)
    assert ResolutionType.ACCEPTED in resolutions.allowed_types(callback)
    with pytest.raises(ActRefused):
        merged(callback)
    decide("accept", callback)
    assert (suspense(), seller.balance()) == (0, (150_000, 0))
    line.refresh_from_db()
    assert resolutions.allowed_types(line) == {ResolutionType.REOPENED}


def test_mistaken_merge_can_be_reopened_and_returned_manually(
    code: dict[str, Any], held: BankTransaction, malee: Client
) -> None:
    merged(held)
    press(malee, held, "reopen")
    assert (state_of(held), suspense()) == (("duplicate", ""), 150_000)
    assert ReconciliationException.objects.get().id == held.id
    merged(held)
    press(malee, held, "reopen")
    assert [
        resolution.reopen_count for resolution in Resolution.objects.filter(type="merged").order_by("id")
    ] == [0, 1]
    import_file(bot_file(credit_line(code, NOON + SECOND)))
    decide("record_manual_return", held, bank_reference="counter 7")
    assert (state_of(held), suspense()) == (("duplicate", "sent_back"), 0)


def test_audit_finds_a_merge_that_a_second_statement_line_disproves(
    code: dict[str, Any], held: BankTransaction
) -> None:
    merged(held)
    assert not differences()
    import_file(bot_file(credit_line(code, NOON + SECOND)))
    (found,) = differences()
    assert "merged bank transactions are probable duplicates" in found
    decide("reopen", held)
    assert not differences()
    assert ResolutionType.SENT_BACK_BY_HAND in resolutions.allowed_types(held)


def test_reversal_of_merged_money_reverses_the_remaining_transaction(
    seller: Seller, held: BankTransaction
) -> None:
    merged(held)
    seller.bank.post(reversal_of(held))
    reversal = BankTransaction.objects.get(kind="reversal")
    assert reversal.match_result == "reversed"
    assert (seller.balance(), suspense()) == ((0, 0), 0)


def test_money_with_an_open_reversal_cannot_be_merged(seller: Seller, held: BankTransaction) -> None:
    seller.reverse(held, 150_001)
    with pytest.raises(ActRefused, match="is reversing money of this transaction"):
        merged(held)


def test_merge_page_explains_the_proof_of_two_transactions(held: BankTransaction) -> None:
    sentence = summaries.by_id([held.id])[held.id].explanation
    days = f"{NOON - DAY:%Y-%m-%d}, {NOON:%Y-%m-%d}"
    assert f"Import the complete statements of {days}: a second line" in sentence
    assert "If the bank says that there is only one transaction, merge them." in sentence


@pytest.mark.parametrize(
    ("action", "other"), [("merged", "NULL"), ("dismissed", "'btx_other'")], ids=["nothing", "not merged"]
)
def test_resolution_names_the_other_transaction_only_when_merged(
    held: BankTransaction, action: str, other: str
) -> None:
    attack = f"""INSERT INTO reconciliation_resolution (subject_id, type, actor, note, reopen_count,
    request_id, created_at, merged_into_id)
        VALUES ('{held.id}', '{action}', 'malee', 'x', 0, '', now(), {other})"""
    assert sqlstate(attack) == CHECK_VIOLATION
