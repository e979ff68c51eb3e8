"""What the database refuses about odd money, whoever asks: plain SQL, judged by SQLSTATE."""

from collections.abc import Callable
from datetime import timedelta
from itertools import product

import pytest

from banks import Word
from core import clock
from receipts import inbox
from receipts.models import HELD, IllegalMove, Kind, Outcome, Receipt, Resolution, Return, SlipCheck
from receipts.models.receipts import MOVES
from tests.receipts.cast import Till, carry_back, decide, parsed, return_of
from tests.receipts.statements.cast import bot, line_of, load
from tests.refunds.cast import carry_out
from tests.refunds.test_guard import CHECK_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, sqlstate
from tests.transfers.cast import Bank

pytestmark = pytest.mark.django_db
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")
OPEN = "resolution = '', resolved_at = NULL"


def decided(resolution: str) -> str:
    return f"resolution = '{resolution}', resolved_at = now()"


def change(receipt: Receipt, assignment: str) -> str | None:
    """How the database takes a change of a receipt."""
    return sqlstate(f"UPDATE receipts_receipt SET {assignment} WHERE id = %s", receipt.id)


# --- what may become of a receipt --------------------------------------------------------------------------

OUTCOMES = {
    Kind.CREDIT: {Outcome.APPLIED, *HELD},
    Kind.DECLINE: {Outcome.DECLINED},
    Kind.REVERSAL: {Outcome.REVERSED, Outcome.ORDERED, Outcome.UNMATCHED},
}
OF_REVERSALS = (Resolution.DISMISSED, Resolution.LOST)
ROADS: dict[Resolution, list[Resolution]] = {
    Resolution.OPEN: [],
    Resolution.SENT_BACK: [Resolution.SENDING_BACK, Resolution.SENT_BACK],
}


def receipt_in(till: Till, resolution: Resolution) -> Receipt:
    """A receipt of which that was decided. Not by the acts, so nothing else says so."""
    if resolution == Resolution.MERGED:
        receipt = probably_same(till)
    else:
        receipt = till.takes_back(till.sold(), 150_001) if resolution in OF_REVERSALS else till.late()
    for step in ROADS.get(resolution, [resolution]):
        receipt.resolve(step, now=clock.now())
    return receipt


def probably_same(till: Till) -> Receipt:
    """A callback whose money a line of the day before has reported."""
    code, now = till.shop.qr_code(), clock.now().replace(microsecond=0)
    load(bot(line_of(code, now - timedelta(days=1))))
    return till.told(code, paid_at=now)


# Money is merged only where it is probably the same, and that may not become anything else.
PAIRS = [
    pair
    for pair in product(Resolution, Resolution)
    if len({*pair}) > 1 and pair != (Resolution.OPEN, Resolution.MERGED)
]


@pytest.mark.parametrize(("start", "target"), PAIRS)
def test_code_and_database_allow_the_same_decisions(
    till: Till, start: Resolution, target: Resolution
) -> None:
    receipt = receipt_in(till, start)
    is_kind_right = (receipt.kind == "reversal") == (target in OF_REVERSALS) or not target
    is_allowed = target in MOVES.get(start, set()) and is_kind_right
    refusal = change(receipt, decided(target) if target else OPEN)
    assert refusal == (None if is_allowed else CHECK_VIOLATION)
    if target not in MOVES.get(start, set()):
        with pytest.raises(IllegalMove):
            receipt.resolve(target, now=clock.now())


@pytest.mark.parametrize(
    "assignment",
    [
        "outcome = 'unmatched'",
        "outcome = ''",
        "outcome = 'applied'",
        "outcome = 'forgotten'",
        "resolution = 'forgotten', resolved_at = now()",
        decided("dismissed"),
        decided("lost"),
        "resolution = 'accepted'",
        "resolved_at = now()",
        "payment_id = NULL",
        "merchant_id = NULL",
        "payment_id = NULL, " + decided("accepted"),
        "payment_id = NULL, " + decided("attached"),
        "also_known_as = 'other'",
    ],
)
def test_late_money_does_not_become_what_it_is_not(till: Till, assignment: str) -> None:
    assert change(till.late(), assignment) == CHECK_VIOLATION


@pytest.mark.parametrize(
    "assignment",
    [
        "amount = amount + 1",
        "bank = 'other'",
        "bank_transaction_id = 'other'",
        "source = 'statement'",
        "source = 'hearsay'",
        "kind = 'decline'",
        "reference1 = 'other'",
        "biller_id = '1'",
        "paid_at = now()",
        "payer_name = 'SOMEBODY ELSE'",
        "payer_account_sealed = ''",
        "received_at = now()",
        "id = 'rcp_000000000000000000000000000'",
    ],
)
def test_the_word_of_a_bank_stays_as_it_was_said(till: Till, assignment: str) -> None:
    assert change(till.late(), assignment) in (NOT_ALLOWED, CHECK_VIOLATION)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome])
def test_a_receipt_is_judged_as_its_kind_is(till: Till, kind: Kind, outcome: Outcome) -> None:
    code = till.shop.qr_code()
    notice = parsed(till.bank.notice(code, type=kind.value))
    receipt = inbox.accept(bank="sandbox", body=b"{}", notice=notice, now=clock.now())
    judged = f"outcome = '{outcome}', judged_at = now()"
    is_right = outcome in OUTCOMES[kind]
    needs_payment = outcome == Outcome.APPLIED
    assert change(receipt, judged) == (None if is_right and not needs_payment else CHECK_VIOLATION)
    if is_right and needs_payment:
        whose = f"payment_id = '{code['payment_id']}', merchant_id = '{till.shop.merchant.id}'"
        assert change(receipt, f"{judged}, {whose}") is None


@pytest.mark.parametrize("resolution", ["accepted", "sent_back", "taken_back", "dismissed"])
def test_nothing_is_decided_about_money_that_paid(till: Till, resolution: str) -> None:
    assert change(till.sold(), decided(resolution)) == CHECK_VIOLATION


def test_a_payment_succeeds_by_one_receipt(till: Till) -> None:
    paid, odd = till.sold(), till.unmatched()
    attach = f"payment_id = '{paid.payment_id}', merchant_id = '{paid.merchant_id}', " + decided("attached")
    assert change(odd, attach) == UNIQUE_VIOLATION
    assert change(till.told(till.shop.qr_code(), satang=1), decided("accepted")) is None


def test_a_receipt_of_two_names_shares_none_with_another(till: Till) -> None:
    one, two = (till.shop.qr_code() for _ in range(2))
    load(bot(line_of(one, clock.now()), line_of(two, clock.now())))
    first, second = Receipt.objects.order_by("id")
    assert change(first, "also_known_as = 'THEBANKSID'") is None
    assert change(second, "also_known_as = 'THEBANKSID'") == UNIQUE_VIOLATION
    assert change(first, "also_known_as = 'ANOTHER'") == CHECK_VIOLATION
    assert change(first, "also_known_as = ''") == CHECK_VIOLATION


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [("reversed", None), ("ordered", None), ("applied", CHECK_VIOLATION), ("", CHECK_VIOLATION)],
)
def test_a_reversal_that_waits_may_be_carried_out(till: Till, outcome: str, refusal: str | None) -> None:
    reversal = till.takes_back(till.sold(), 150_001)
    assert change(reversal, f"outcome = '{outcome}'") == refusal


@pytest.mark.parametrize("outcome", [*HELD, "ordered", ""])
def test_a_reversal_that_was_carried_out_stays_so(till: Till, outcome: str) -> None:
    assert change(till.takes_back(till.sold()), f"outcome = '{outcome}'") == CHECK_VIOLATION


@pytest.mark.parametrize("deed", ["dismiss", "lose"])
def test_a_reversal_that_was_decided_is_not_carried_out(till: Till, deed: str) -> None:
    reversal = till.takes_back(till.sold(), 150_001)
    decide(deed, reversal)
    assert change(reversal, f"outcome = 'reversed', {OPEN}") == CHECK_VIOLATION


# --- returns -----------------------------------------------------------------------------------------------

INSERT = """INSERT INTO receipts_return
    (id, receipt_id, amount, route, status, by_hand, bank_reference, failure_code, created_at)
    VALUES ('rtn_000000000000000000000000000', %s, %s, 'bank:sandbox', 'pending', false, '', '', now())"""


def test_only_what_waits_goes_back_and_all_of_it(till: Till) -> None:
    late, reversal = till.late(), till.takes_back(till.sold(), 150_001)
    accepted = till.late()
    decide("accept", accepted)
    for receipt in (till.sold(), accepted, reversal):
        assert sqlstate(INSERT, receipt.id, receipt.amount) == CHECK_VIOLATION
    for amount in (1, late.amount + 1, 0, -1):
        assert sqlstate(INSERT, late.id, amount) == CHECK_VIOLATION
    assert sqlstate(INSERT, late.id, late.amount) is None


def test_money_goes_back_once_at_a_time(till: Till) -> None:
    receipt = till.late()
    assert sqlstate(INSERT, receipt.id, receipt.amount) is None
    again = INSERT.replace("rtn_0", "rtn_1")
    assert sqlstate(again, receipt.id, receipt.amount) == UNIQUE_VIOLATION


@pytest.mark.parametrize(
    ("assignment", "refusal"),
    [
        ("amount = amount - 1", NOT_ALLOWED),
        ("route = 'bank:other'", NOT_ALLOWED),
        ("by_hand = true", NOT_ALLOWED),
        ("created_at = now()", NOT_ALLOWED),
        ("id = 'rtn_000000000000000000000000000'", NOT_ALLOWED),
        ("status = 'lost'", CHECK_VIOLATION),
        ("status = 'completed'", CHECK_VIOLATION),
        ("completed_at = now()", CHECK_VIOLATION),
        ("status = 'failed'", CHECK_VIOLATION),
        ("failure_code = 'x'", CHECK_VIOLATION),
        ("returned_at = now()", CHECK_VIOLATION),
    ],
)
def test_a_return_that_makes_no_sense_is_refused(
    till: Till, served_by: Serving, assignment: str, refusal: str
) -> None:
    served_by()
    decide("send_back", till.late())
    assert sqlstate(f"UPDATE receipts_return SET {assignment}") == refusal


@pytest.mark.parametrize("ends", [DONE, REFUSED])
@pytest.mark.parametrize(
    "assignment",
    [
        "status = 'pending', completed_at = NULL, failure_code = ''",
        "status = 'canceled', completed_at = NULL, failure_code = ''",
        "completed_at = coalesce(completed_at, now()) + interval '1 day'",
    ],
)
def test_how_a_return_ended_never_changes(
    till: Till, served_by: Serving, ends: Word, assignment: str
) -> None:
    served_by(sends=[ends])
    decide("send_back", receipt := till.late())
    carry_back()
    assert return_of(receipt).status in ("completed", "failed")
    assert sqlstate(f"UPDATE receipts_return SET {assignment}") == CHECK_VIOLATION


def test_a_return_comes_back_once(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    decide("send_back", till.late())
    carry_back()
    assert sqlstate("UPDATE receipts_return SET returned_at = now()") is None
    for other in ("NULL", "now() + interval '1 day'"):
        assert sqlstate(f"UPDATE receipts_return SET returned_at = {other}") == CHECK_VIOLATION


# --- acts and what else is kept ----------------------------------------------------------------------------

ACT = """INSERT INTO receipts_act (subject_id, deed, by, why, request_id, at)
    VALUES ('{subject_id}', '{deed}', '{by}', '{why}', '', now())"""


def acted(**changes: str) -> str:
    return ACT.format(**{"subject_id": "ntc_x", "deed": "dismissed", "by": "malee", "why": "x"} | changes)


def test_an_act_says_who_and_why_and_ends_a_message_once(db: None) -> None:
    for change_of in ({"by": ""}, {"why": ""}, {"deed": "forgotten"}):
        assert sqlstate(acted(**change_of)) == CHECK_VIOLATION
    for deed in ("dismissed", "kept", "lost"):
        assert sqlstate(acted(deed=deed, subject_id=deed)) is None
        assert sqlstate(acted(deed=deed, subject_id=deed)) == UNIQUE_VIOLATION


def everything(till: Till, served_by: Serving) -> None:
    """A row in each table that is kept."""
    served_by(sends=[DONE])
    decide("send_back", till.late())
    load(bot(line_of(till.shop.qr_code(), clock.now())))
    SlipCheck.objects.create(sending_bank="014", transaction_id="x", by="malee", at=clock.now())
    till.takes_back(till.sold())
    till.refund(till.paid())
    carry_out()


@pytest.mark.parametrize(
    ("table", "assignment"),
    [
        ("receipts_receipt", "amount = amount + 1"),
        ("receipts_notice", "verdict = 'repeat'"),
        ("receipts_act", "by = 'somsak'"),
        ("receipts_act", "why = 'other'"),
        ("receipts_act", "deed = 'accepted'"),
        ("receipts_return", "amount = amount + 1"),
        ("receipts_statement", "name = 'other'"),
        ("receipts_statement", "total = 7"),
        ("receipts_statementline", "amount = 7"),
        ("receipts_statementline", "receipt_id = NULL, result = 'unreadable'"),
        ("receipts_slipcheck", "by = 'somsak'"),
        ("transfers_transfer", "merchant_id = 'mch_x'"),
        ("transfers_transfer", "charge_id = 'x'"),
        ("refunds_refund", "reversal_id = 'rcp_x' WHERE reversal_id IS NULL"),
        ("refunds_refund", "reversal_id = NULL WHERE reversal_id IS NOT NULL"),
        ("refunds_refund", "returned_at = now() WHERE reversal_id IS NOT NULL"),
        ("refunds_takeback", "amount = amount + 1"),
        ("refunds_takeback", "shown = shown - 1"),
        ("refunds_takeback", "shown = amount + 1"),
        ("refunds_refund", "status = 'failed', failure_code = 'x', completed_at = NULL"),
    ],
)
def test_what_is_kept_is_never_changed_deleted_or_emptied(
    till: Till, served_by: Serving, table: str, assignment: str
) -> None:
    everything(till, served_by)
    assert sqlstate(f"UPDATE {table} SET {assignment}") in (NOT_ALLOWED, CHECK_VIOLATION)
    assert sqlstate(f"DELETE FROM {table}") == NOT_ALLOWED
    assert sqlstate(f"TRUNCATE {table} CASCADE") == NOT_ALLOWED


def test_a_refund_is_born_completed_only_where_a_bank_took_the_money_back(till: Till) -> None:
    till.takes_back(till.sold(), 50_000)
    born = """INSERT INTO refunds_refund (
            id, merchant_id, payment_id, transaction_id, amount, currency, status, route,
            created_at, updated_at, completed_at, reversal_id, asked_by, asked_request_id, canceled_by,
            canceled_request_id)
        SELECT 'ref_x', merchant_id, payment_id, transaction_id, amount, currency, {}, route, created_at,
            updated_at, completed_at, {}, '', '', '', '' FROM refunds_refund"""
    assert sqlstate(born.format("status", "NULL")) == CHECK_VIOLATION
    assert sqlstate(born.format("'pending'", "'rcp_x'")) == CHECK_VIOLATION


@pytest.mark.parametrize("purpose", ["return", "refund", "withdrawal"])
def test_only_what_came_in_is_taken_back_by_its_id(till: Till, served_by: Serving, purpose: str) -> None:
    served_by()
    decide("send_back", till.late())
    copy = """INSERT INTO transfers_transfer (
            id, purpose, merchant_id, route, amount, bank_code, account_sealed, account_name, charge_id,
            state, due_at, inquiries, bank_reference, failure_code, created_at, settled_by)
        SELECT 'rtn_x', %s, merchant_id, route, amount, {}, {}, account_name, {}, state, due_at, inquiries,
            bank_reference, failure_code, created_at, settled_by FROM transfers_transfer"""
    by_id = copy.format("''", "''", "'TX1'")
    assert sqlstate(by_id, purpose) == (CHECK_VIOLATION if purpose == "withdrawal" else None)
    for neither_nor in (copy.format("''", "''", "''"), copy.format("bank_code", "account_sealed", "'TX1'")):
        assert sqlstate(neither_nor.replace("rtn_x", "rtn_y"), purpose) == CHECK_VIOLATION
    assert Return.objects.count() == 1
