"""Database rules of bank transactions, returns and resolutions: plain SQL, checked by SQLSTATE."""

from collections.abc import Callable
from itertools import product

import pytest
from django.db import connection

from banks import TransferResult
from core import clock
from core.database.state_machines import IllegalTransition
from reconciliation.matching import intake
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    ResolutionState,
    Return,
)
from reconciliation.slips import checking
from tests.reconciliation.builders import Seller, decide, latest_return, parse, run_returns
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file, report_twice
from tests.refunds.builders import send_due_refunds
from tests.sqlstates import CHECK_VIOLATION, FOREIGN_KEY_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, sqlstate
from tests.transfers.builders import Bank

pytestmark = pytest.mark.django_db
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)
OPEN = "resolution_state = '', resolved_at = NULL"


def decided(resolution_state: str) -> str:
    return f"resolution_state = '{resolution_state}', resolved_at = now()"


def change(bank_transaction: BankTransaction, assignment: str) -> str | None:
    """Return the SQLSTATE of a refused change of a bank transaction, or None."""
    return sqlstate(
        f"UPDATE reconciliation_banktransaction SET {assignment} WHERE id = %s", bank_transaction.id
    )


# --- transitions of bank transactions ---------------------------------------------------------------------

RESULTS_BY_KIND = {
    BankTransactionKind.CREDIT: {MatchResult.APPLIED, *HELD_RESULTS},
    BankTransactionKind.DECLINE: {MatchResult.DECLINED},
    BankTransactionKind.REVERSAL: {MatchResult.REVERSED, MatchResult.ORDERED, MatchResult.UNMATCHED},
}
REVERSAL_STATES = (ResolutionState.DISMISSED, ResolutionState.WRITTEN_OFF)
PATHS: dict[ResolutionState, list[ResolutionState]] = {
    ResolutionState.OPEN: [],
    ResolutionState.SENT_BACK: [ResolutionState.SENDING_BACK, ResolutionState.SENT_BACK],
}


def bank_transaction_in(seller: Seller, resolution_state: ResolutionState) -> BankTransaction:
    """A bank transaction in this resolution state, without the other rows that an action writes."""
    if resolution_state == ResolutionState.MERGED:
        bank_transaction = report_twice(seller)
    else:
        bank_transaction = (
            seller.reverse(seller.sale(), 150_001) if resolution_state in REVERSAL_STATES else seller.late()
        )
    for step in PATHS.get(resolution_state, [resolution_state]):
        bank_transaction.resolve(step, now=clock.now())
    return bank_transaction


# Only probable duplicates can be merged, and they have no other transition. Money is undone with its import.
PAIRS = [
    pair
    for pair in product(ResolutionState, ResolutionState)
    if len({*pair}) > 1
    and pair != (ResolutionState.OPEN, ResolutionState.MERGED)
    and ResolutionState.UNDONE not in pair
]


@pytest.mark.parametrize(("start", "target"), PAIRS)
@pytest.mark.slow
def test_python_and_database_allow_the_same_resolution_transitions(
    seller: Seller, start: ResolutionState, target: ResolutionState
) -> None:
    bank_transaction = bank_transaction_in(seller, start)
    is_kind_right = (bank_transaction.kind == "reversal") == (target in REVERSAL_STATES) or not target
    is_allowed = target in BankTransaction.TRANSITIONS.get(start, set()) and is_kind_right
    refusal = change(bank_transaction, decided(target) if target else OPEN)
    assert refusal == (None if is_allowed else CHECK_VIOLATION)
    if target not in BankTransaction.TRANSITIONS.get(start, set()):
        with pytest.raises(IllegalTransition):
            bank_transaction.resolve(target, now=clock.now())


@pytest.mark.parametrize(
    "assignment",
    [
        "match_result = 'unmatched'",
        "match_result = ''",
        "match_result = 'applied'",
        "match_result = 'forgotten'",
        "resolution_state = 'forgotten', resolved_at = now()",
        decided("dismissed"),
        decided("written_off"),
        "resolution_state = 'accepted'",
        "resolved_at = now()",
        "payment_id = NULL",
        "merchant_id = NULL",
        "payment_id = NULL, " + decided("accepted"),
        "payment_id = NULL, " + decided("attached"),
        "later_bank_reference = 'other'",
    ],
)
@pytest.mark.slow
def test_database_refuses_invalid_states_of_late_money(seller: Seller, assignment: str) -> None:
    assert change(seller.late(), assignment) == CHECK_VIOLATION


@pytest.mark.parametrize(
    "assignment",
    [
        "amount = amount + 1",
        "bank = 'other'",
        "bank_reference = 'other'",
        "source = 'statement'",
        "source = 'hearsay'",
        "kind = 'decline'",
        "reference1 = 'other'",
        "biller_id = '1'",
        "paid_at = now()",
        "payer_name = 'SOMEBODY ELSE'",
        "payer_account_sealed = ''",
        "received_at = now()",
        "id = 'btx_000000000000000000000000000'",
    ],
)
@pytest.mark.slow
def test_database_refuses_changes_of_reported_fields(seller: Seller, assignment: str) -> None:
    assert change(seller.late(), assignment) in (NOT_ALLOWED, CHECK_VIOLATION)


@pytest.mark.parametrize("kind", BankTransactionKind)
@pytest.mark.parametrize("match_result", [match_result for match_result in MatchResult if match_result])
def test_match_result_must_fit_the_bank_transaction_kind(
    seller: Seller, kind: BankTransactionKind, match_result: MatchResult
) -> None:
    code = seller.shop.qr_code()
    notification = parse(seller.bank.notification(code, type=kind.value))
    bank_transaction = intake.receive(bank="sandbox", body=b"{}", notification=notification, now=clock.now())
    matched = f"match_result = '{match_result}', matched_at = now()"
    is_right = match_result in RESULTS_BY_KIND[kind]
    needs_payment = match_result == MatchResult.APPLIED
    assert change(bank_transaction, matched) == (None if is_right and not needs_payment else CHECK_VIOLATION)
    if is_right and needs_payment:
        whose = f"payment_id = '{code['payment_id']}', merchant_id = '{seller.shop.merchant.id}'"
        assert change(bank_transaction, f"{matched}, {whose}") is None


@pytest.mark.parametrize("resolution_state", ["accepted", "sent_back", "taken_back", "dismissed"])
def test_applied_bank_transaction_cannot_be_resolved(seller: Seller, resolution_state: str) -> None:
    assert change(seller.sale(), decided(resolution_state)) == CHECK_VIOLATION


@pytest.mark.slow
def test_payment_is_credited_by_one_bank_transaction_only(seller: Seller) -> None:
    paid, held = seller.sale(), seller.unmatched()
    attach = f"payment_id = '{paid.payment_id}', merchant_id = '{paid.merchant_id}', " + decided("attached")
    assert change(held, attach) == UNIQUE_VIOLATION
    assert change(seller.late(), decided("accepted")) is None


def test_bank_references_are_unique_across_both_columns(seller: Seller) -> None:
    one, two = (seller.shop.qr_code() for _ in range(2))
    import_file(bot_file(credit_line(one, clock.now()), credit_line(two, clock.now())))
    first, second = BankTransaction.objects.order_by("id")
    assert change(first, "later_bank_reference = 'THEBANKSID'") is None
    assert change(second, "later_bank_reference = 'THEBANKSID'") == UNIQUE_VIOLATION
    assert change(first, "later_bank_reference = 'ANOTHER'") == CHECK_VIOLATION
    assert change(first, "later_bank_reference = ''") == CHECK_VIOLATION


@pytest.mark.parametrize(
    ("match_result", "refusal"),
    [("reversed", None), ("ordered", None), ("applied", CHECK_VIOLATION), ("", CHECK_VIOLATION)],
)
def test_unmatched_reversal_may_become_reversed(
    seller: Seller, match_result: str, refusal: str | None
) -> None:
    reversal = seller.reverse(seller.sale(), 150_001)
    assert change(reversal, f"match_result = '{match_result}'") == refusal


@pytest.mark.parametrize("match_result", [*HELD_RESULTS, "ordered", ""])
@pytest.mark.slow
def test_applied_reversal_cannot_change(seller: Seller, match_result: str) -> None:
    assert change(seller.reverse(seller.sale()), f"match_result = '{match_result}'") == CHECK_VIOLATION


@pytest.mark.parametrize("action", ["dismiss", "write_off"])
@pytest.mark.slow
def test_resolved_reversal_cannot_be_applied(seller: Seller, action: str) -> None:
    reversal = seller.reverse(seller.sale(), 150_001)
    decide(action, reversal)
    assert change(reversal, f"match_result = 'reversed', {OPEN}") == CHECK_VIOLATION


# --- returns -----------------------------------------------------------------------------------------------

INSERT_RETURN = """INSERT INTO reconciliation_return
    (id, bank_transaction_id, amount, route, status, is_manual, bank_reference, failure_code, created_at)
    VALUES ('rtn_000000000000000000000000000', %s, %s, 'bank:sandbox', 'pending', false, '', '', now())"""


@pytest.mark.slow
def test_only_held_money_is_returned_and_only_in_full(seller: Seller) -> None:
    late, reversal = seller.late(), seller.reverse(seller.sale(), 150_001)
    accepted = seller.late()
    decide("accept", accepted)
    for bank_transaction in (seller.sale(), accepted, reversal):
        assert sqlstate(INSERT_RETURN, bank_transaction.id, bank_transaction.amount) == CHECK_VIOLATION
    for amount in (1, late.amount + 1, 0, -1):
        assert sqlstate(INSERT_RETURN, late.id, amount) == CHECK_VIOLATION
    assert sqlstate(INSERT_RETURN, late.id, late.amount) is None


def test_second_open_return_of_a_bank_transaction_is_refused(seller: Seller) -> None:
    bank_transaction = seller.late()
    assert sqlstate(INSERT_RETURN, bank_transaction.id, bank_transaction.amount) is None
    again = INSERT_RETURN.replace("rtn_0", "rtn_1")
    assert sqlstate(again, bank_transaction.id, bank_transaction.amount) == UNIQUE_VIOLATION


@pytest.mark.parametrize(
    ("assignment", "refusal"),
    [
        ("amount = amount - 1", NOT_ALLOWED),
        ("route = 'bank:other'", NOT_ALLOWED),
        ("is_manual = true", NOT_ALLOWED),
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
@pytest.mark.slow
def test_database_refuses_invalid_returns(
    seller: Seller, served_by: Serving, assignment: str, refusal: str
) -> None:
    served_by()
    decide("send_back", seller.late())
    assert sqlstate(f"UPDATE reconciliation_return SET {assignment}") == refusal


@pytest.mark.parametrize("ends", [DONE, REFUSED])
@pytest.mark.parametrize(
    "assignment",
    [
        "status = 'pending', completed_at = NULL, failure_code = ''",
        "status = 'canceled', completed_at = NULL, failure_code = ''",
        "completed_at = coalesce(completed_at, now()) + interval '1 day'",
    ],
)
@pytest.mark.slow
def test_final_return_never_changes(
    seller: Seller, served_by: Serving, ends: TransferResult, assignment: str
) -> None:
    served_by(sends=[ends])
    decide("send_back", bank_transaction := seller.late())
    run_returns()
    assert latest_return(bank_transaction).status in ("completed", "failed")
    assert sqlstate(f"UPDATE reconciliation_return SET {assignment}") == CHECK_VIOLATION


@pytest.mark.slow
def test_returned_at_of_a_return_is_set_once(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    decide("send_back", seller.late())
    run_returns()
    assert sqlstate("UPDATE reconciliation_return SET returned_at = now()") is None
    for other in ("NULL", "now() + interval '1 day'"):
        assert sqlstate(f"UPDATE reconciliation_return SET returned_at = {other}") == CHECK_VIOLATION


# --- resolutions and append-only tables ----------------------------------------------------------

INSERT_RESOLUTION = """
INSERT INTO reconciliation_resolution (subject_id, type, actor, note, request_id, created_at)
    VALUES ('{subject_id}', '{type}', '{actor}', '{note}', '', now())"""


def insert_resolution(**changes: str) -> str:
    return INSERT_RESOLUTION.format(
        **{"subject_id": "ntf_x", "type": "dismissed", "actor": "malee", "note": "x"} | changes
    )


def test_resolution_needs_actor_and_note_and_is_unique(db: None) -> None:
    for change_of in ({"actor": ""}, {"note": ""}, {"type": "forgotten"}):
        assert sqlstate(insert_resolution(**change_of)) == CHECK_VIOLATION
    for resolution in ("dismissed", "kept"):
        assert sqlstate(insert_resolution(type=resolution, subject_id=resolution)) is None
        assert sqlstate(insert_resolution(type=resolution, subject_id=resolution)) == UNIQUE_VIOLATION


def store_all_kinds(seller: Seller, served_by: Serving) -> None:
    """Store a row in each append-only table."""
    served_by(sends=[DONE])
    decide("send_back", seller.late())
    import_file(bot_file(credit_line(seller.shop.qr_code(), clock.now())))
    checking.record("014", "x", now=clock.now())
    seller.reverse(seller.sale())
    seller.refund(seller.paid())
    send_due_refunds()


REFUSED_UPDATES = [
    ("reconciliation_banktransaction", "amount = amount + 1"),
    ("reconciliation_banknotification", "result = 'repeat'"),
    ("reconciliation_resolution", "actor = 'somsak'"),
    ("reconciliation_resolution", "note = 'other'"),
    ("reconciliation_resolution", "type = 'accepted'"),
    ("reconciliation_return", "amount = amount + 1"),
    ("reconciliation_statement", "file_name = 'other'"),
    ("reconciliation_statement", "line_count = 7"),
    ("reconciliation_statementline", "amount = 7"),
    ("reconciliation_statementline", "bank_transaction_id = NULL, result = 'unreadable'"),
    ("reconciliation_slipcheck", "actor = 'somsak'"),
    ("transfers_transfer", "merchant_id = 'mch_x'"),
    ("transfers_transfer", "charge_id = 'x'"),
    ("refunds_refund", "reversal_id = 'btx_x' WHERE reversal_id IS NULL"),
    ("refunds_refund", "reversal_id = NULL WHERE reversal_id IS NOT NULL"),
    ("refunds_refund", "returned_at = now() WHERE reversal_id IS NOT NULL"),
    ("refunds_refundreversal", "amount = amount + 1"),
    ("refunds_refundreversal", "refunded_amount = refunded_amount - 1"),
    ("refunds_refundreversal", "refunded_amount = amount + 1"),
    ("refunds_refund", "status = 'failed', failure_code = 'x', completed_at = NULL"),
]


@pytest.mark.slow
def test_bank_records_are_never_updated_deleted_or_truncated(
    seller: Seller, served_by: Serving, subtests: pytest.Subtests
) -> None:
    store_all_kinds(seller, served_by)
    for table, assignment in REFUSED_UPDATES:
        with subtests.test(table, assignment=assignment):
            assert sqlstate(f"UPDATE {table} SET {assignment}") in (NOT_ALLOWED, CHECK_VIOLATION)
            assert sqlstate(f"DELETE FROM {table}") == NOT_ALLOWED
            assert sqlstate(f"TRUNCATE {table} CASCADE") == NOT_ALLOWED


@pytest.mark.slow
def test_refund_is_created_completed_only_for_a_reversal(seller: Seller) -> None:
    seller.reverse(seller.sale(), 50_000)
    insert = """INSERT INTO refunds_refund (
            id, merchant_id, payment_id, transaction_id, amount, currency, status, route,
            created_at, updated_at, completed_at, reversal_id, actor, request_id, cancel_actor,
            cancel_request_id)
        SELECT 'ref_x', merchant_id, payment_id, transaction_id, amount, currency, {}, route, created_at,
            updated_at, completed_at, {}, '', '', '', '' FROM refunds_refund"""
    assert sqlstate(insert.format("status", "NULL")) == CHECK_VIOLATION
    assert sqlstate(insert.format("'pending'", "'btx_x'")) == CHECK_VIOLATION


@pytest.mark.parametrize("purpose", ["return", "refund", "withdrawal"])
@pytest.mark.slow
def test_void_needs_the_id_of_a_received_payment(seller: Seller, served_by: Serving, purpose: str) -> None:
    served_by()
    decide("send_back", seller.late())
    copy = """INSERT INTO transfers_transfer (
            id, purpose, merchant_id, route, amount, bank_code, account_sealed, account_name, charge_id,
            state, due_at, inquiries, bank_reference, failure_code, created_at, completed_by)
        SELECT 'rtn_x', %s, merchant_id, route, amount, {}, {}, account_name, {}, state, due_at, inquiries,
            bank_reference, failure_code, created_at, completed_by FROM transfers_transfer"""
    by_id = copy.format("''", "''", "'TX1'")
    assert sqlstate(by_id, purpose) == (CHECK_VIOLATION if purpose == "withdrawal" else None)
    for invalid in (copy.format("''", "''", "''"), copy.format("bank_code", "account_sealed", "'TX1'")):
        assert sqlstate(invalid.replace("rtn_x", "rtn_y"), purpose) == CHECK_VIOLATION
    assert Return.objects.count() == 1


# --- rows that triggers look for in place of foreign keys -------------------------------------------------

NOBODY = '"merchant_id": "mch_x"'


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("transactions_transaction", f'"payment_id": "pay_x", {NOBODY}'),
        ("ledger_balancetransaction", NOBODY),
        (
            "reconciliation_banktransaction",
            f'"bank_reference": "x", "payment_id": null, "match_result": "", "matched_at": null, {NOBODY}',
        ),
        ("reconciliation_banknotification", '"bank_transaction_id": "btx_x", "result": "repeat"'),
    ],
)
def test_row_names_a_merchant_and_a_bank_transaction_that_exist(
    seller: Seller, table: str, changes: str
) -> None:
    seller.sale()
    copy = f"INSERT INTO {table} SELECT (jsonb_populate_record(row, %s::jsonb)).* FROM {table} AS row LIMIT 1"
    assert sqlstate(copy, f'{{"id": "x_copy", {changes}}}') == FOREIGN_KEY_VIOLATION


def test_bank_transaction_is_not_given_to_a_merchant_that_does_not_exist(seller: Seller) -> None:
    held = seller.late()
    assert change(held, f"{decided('attached')}, merchant_id = 'mch_x'") == FOREIGN_KEY_VIOLATION


# --- locks ------------------------------------------------------------------------------------------------


def test_function_locks_credits_in_the_order_of_all_transactions() -> None:
    """`tests/lock_order.py` sees only its call."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('reconciliation_lock_credits'::regproc)")
        (text,) = cursor.fetchone()
    steps = (
        "PERFORM pg_advisory_xact_lock(name)",
        "ORDER BY id LOOP\n        PERFORM 1 FROM payments_payment AS t WHERE t.id = one FOR NO KEY UPDATE",
        "FROM reconciliation_banktransaction AS t WHERE t.id = ids[place] FOR NO KEY UPDATE",
    )
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert 'DISTINCT id COLLATE "C" AS id FROM unnest(payment_ids)' in text[: places[1]]
    assert text.count("FOR NO KEY UPDATE") + text.count("pg_advisory") == len(steps)
