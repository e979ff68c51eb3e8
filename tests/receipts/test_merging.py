"""Staff count two reports of one bank transaction once, and open that again where it was a mistake."""

from datetime import datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client

from core import clock
from core.clock import BANGKOK
from receipts import acts, cases
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Act, Deed, Receipt, Waiting
from tests.audit import differences
from tests.console.timeline_cast import types
from tests.receipts.cast import WHY, Till, decide, now_of, postings_of, reversal_of, suspense
from tests.receipts.staff import LIST, page_of, read, staff
from tests.receipts.statements.cast import bot, line_of, load
from tests.refunds.test_guard import sqlstate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
NOON = datetime.combine(clock.now().astimezone(BANGKOK).date(), time(), BANGKOK) - DAY / 2
CHECK_VIOLATION = "23514"


@pytest.fixture
def code(till: Till) -> dict[str, Any]:
    made: dict[str, Any] = till.shop.qr_code()
    return made


@pytest.fixture
def held(till: Till, code: dict[str, Any]) -> Receipt:
    """A callback of money that a line of the day before reported, and that paid for the code."""
    load(bot(line_of(code, NOON - DAY)))
    return till.told(code, paid_at=NOON)


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt", "resolve_receipt")


def press(client: Client, receipt: Receipt, slug: str) -> str:
    answer = client.post(f"{LIST}{receipt.id}/act/{slug}/", {"why": WHY}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def merged(receipt: Receipt) -> Act:
    made = decide("merge", receipt)
    assert isinstance(made, Act)
    return made


def test_probably_the_same_transaction_is_counted_once_with_name_and_reason(
    till: Till, held: Receipt, malee: Client
) -> None:
    paid = Receipt.objects.get(outcome="applied")
    assert suspense() == 150_000
    assert paid.id in read(malee, f"{LIST}{held.id}/act/merge/")
    press(malee, held, "merge")
    assert (now_of(held), suspense()) == (("duplicate", "merged"), 0)
    assert not Waiting.objects.exists()
    made = Act.objects.get()
    assert (made.deed, made.by, made.why, made.merged_with) == ("merged", "malee", WHY, paid.id)
    assert postings_of(held.id) == [("held", 150_000), ("merged", 150_000)]
    assert now_of(paid) == ("applied", "")
    assert types(till.shop, str(paid.payment_id))[-1] == "staff.merged"
    page = read(malee, page_of(held.id))
    assert "Same transaction as" in page and paid.id not in read(malee, LIST)
    shown = till.shop.get(f"/v1/payments/{paid.payment_id}").json()
    assert [each["status"] for each in shown["exceptions"]] == ["merged"]


def test_second_click_on_count_once_changes_nothing(held: Receipt) -> None:
    merged(held)
    with pytest.raises(AlreadyDone, match="malee decided already"):
        merged(held)
    assert suspense() == 0


def test_money_that_is_surely_other_money_cannot_be_counted_once(till: Till) -> None:
    for other in (till.duplicate(), till.unmatched()):
        assert Deed.MERGED not in acts.possible(other)
        with pytest.raises(NotPossible, match="not probably the same"):
            merged(other)
        refusal = sqlstate(
            "UPDATE receipts_receipt SET resolution = 'merged', resolved_at = now() WHERE id = %s", other.id
        )
        assert refusal == CHECK_VIOLATION


def test_of_two_exceptions_that_are_one_the_other_can_be_decided_afterwards(till: Till) -> None:
    code, late = till.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
    load(bot(line_of(code, late + DAY)))
    line, callback = Receipt.objects.get(), till.told(code, paid_at=late)
    assert [acts.possible(each) - {Deed.CONFIRMED} for each in (line, callback)] == [{Deed.MERGED}] * 2
    merged(line)
    assert Deed.ACCEPTED in acts.possible(callback)
    with pytest.raises(NotPossible):
        merged(callback)
    decide("accept", callback)
    assert (suspense(), till.balance()) == (0, (150_000, 0))
    line.refresh_from_db()
    assert acts.possible(line) == {Deed.REOPENED}


def test_merge_that_was_a_mistake_is_opened_again_and_sent_back(
    code: dict[str, Any], held: Receipt, malee: Client
) -> None:
    merged(held)
    press(malee, held, "reopen")
    assert (now_of(held), suspense()) == (("duplicate", ""), 150_000)
    assert Waiting.objects.get().id == held.id
    merged(held)
    press(malee, held, "reopen")
    assert [act.round for act in Act.objects.filter(deed="merged").order_by("id")] == [0, 1]
    load(bot(line_of(code, NOON + SECOND)))
    decide("send_back_by_hand", held, bank_reference="counter 7")
    assert (now_of(held), suspense()) == (("duplicate", "sent_back"), 0)


def test_audit_finds_a_merge_that_a_second_statement_line_disproves(
    code: dict[str, Any], held: Receipt
) -> None:
    merged(held)
    assert not differences()
    load(bot(line_of(code, NOON + SECOND)))
    (found,) = differences()
    assert "what was counted once is probably the same transaction" in found
    decide("reopen", held)
    assert not differences()
    assert Deed.SENT_BACK_BY_HAND in acts.possible(held)


def test_reversal_of_merged_money_takes_back_the_one_that_counts(till: Till, held: Receipt) -> None:
    merged(held)
    till.bank.post(reversal_of(held))
    reversal = Receipt.objects.get(kind="reversal")
    assert reversal.outcome == "reversed"
    assert (till.balance(), suspense()) == ((0, 0), 0)


def test_money_with_a_waiting_reversal_is_not_counted_once(till: Till, held: Receipt) -> None:
    till.takes_back(held, 150_001)
    with pytest.raises(NotPossible, match="takes money of this back itself"):
        merged(held)


def test_page_says_what_proves_that_there_are_two(held: Receipt) -> None:
    sentence = cases.of([held.id])[held.id].sentence
    days = f"the whole of {NOON - DAY:%Y-%m-%d} and {NOON:%Y-%m-%d}"
    assert f"import the statements of {days}: a second line" in sentence
    assert "If the bank says that there is only one, count it once." in sentence


@pytest.mark.parametrize(
    ("deed", "other"), [("merged", "NULL"), ("dismissed", "'rcp_other'")], ids=["nothing", "not merged"]
)
def test_act_names_the_other_transaction_only_when_merged(held: Receipt, deed: str, other: str) -> None:
    attack = f"""INSERT INTO receipts_act (subject_id, deed, by, why, round, request_id, at, merged_with)
        VALUES ('{held.id}', '{deed}', 'malee', 'x', 0, '', now(), {other})"""
    assert sqlstate(attack) == CHECK_VIOLATION
