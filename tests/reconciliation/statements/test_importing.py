"""A statement line joins its bank transaction, or creates one."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from banks.base import UnknownBank
from core import clock
from core.clock import BANGKOK
from core.thai import thaiqr
from ledger.models import Journal
from reconciliation.matching import services as matching
from reconciliation.models import BankNotification, BankTransaction, Statement, StatementLine
from reconciliation.statements import importing
from reconciliation.statements.lines import ALREADY_STORED
from sandbox import services as sandbox
from sandbox.models import SandboxEntry
from sandbox.statements import FORMATS
from tests import sqlstates
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.statements.statement_files import (
    BILLER,
    bot_file,
    credit_line,
    csv_file,
    detail,
    import_file,
    import_results,
    trailer,
)
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


def shown(body: bytes) -> list[tuple[str, str]]:
    return [
        (line.result, line.bank_transaction.match_result if line.bank_transaction else "")
        for line in import_results(body)
    ]


def now_to_the_second() -> datetime:
    return clock.now().replace(microsecond=0)


def test_unreported_statement_line_pays_the_qr_code(shop: Shop) -> None:
    code = shop.qr_code()
    assert shown(bot_file(credit_line(code, clock.now()))) == [("new", "applied")]
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    bank_transaction = BankTransaction.objects.get()
    assert (bank_transaction.source, bank_transaction.payer_name) == ("statement", "สมชาย ใจดี")
    assert bank_transaction.payer_bank_code == "014"
    assert bank_transaction.bank_reference.startswith("statement-")
    assert Event.objects.filter(type="payment.succeeded").count() == 1


@pytest.mark.usefixtures("shop")
def test_statement_of_a_day_without_money_has_no_lines() -> None:
    assert shown(bot_file()) == []
    assert Statement.objects.get().line_count == 0


def test_statement_line_is_deduplicated_with_a_callback(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    paid_at = now_to_the_second() + timedelta(milliseconds=321)
    bank.notify(code, paid_at=paid_at)
    assert shown(bot_file(credit_line(code, paid_at))) == [("attached", "applied")]
    assert StatementLine.objects.get().bank_transaction == BankTransaction.objects.get()
    assert Transaction.objects.count() == 1


@pytest.mark.slow
def test_callback_and_repeats_are_deduplicated_with_a_statement_line(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code = shop.qr_code()
    paid_at = now_to_the_second()
    import_file(bot_file(credit_line(code, paid_at)))
    reported = bank.notification(code, paid_at=paid_at + timedelta(milliseconds=999))
    for _ in range(2):
        assert bank.post(reported).json() == {"status": "received"}
    bank_transaction = BankTransaction.objects.get()
    assert (
        bank_transaction.current_bank_reference
        == bank_transaction.later_bank_reference
        == reported["transaction_id"]
    )
    assert [notification.result for notification in bank_transaction.notifications.all()] == [
        "repeat",
        "repeat",
    ]
    bank.post(reported | {"amount": "1.00"})
    assert BankNotification.objects.filter(result="conflict").count() == 1
    assert (BankTransaction.objects.count(), Transaction.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "change", [{"satang": 149_999}, {"reference1": "ANOTHERREFERENCE0000"}, {"later": 86_400}]
)
@pytest.mark.slow
def test_callback_about_other_money_is_not_deduplicated_with_a_statement_line(
    shop: Shop, bank: SandboxBankClient, change: dict[str, Any]
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    import_file(bot_file(credit_line(code, paid_at)))
    bank.notify(code, paid_at=paid_at + timedelta(seconds=change.pop("later", 0)), **change)
    assert BankTransaction.objects.count() == 2
    assert not BankTransaction.objects.exclude(later_bank_reference="").exists()


@pytest.mark.slow
def test_repeated_callback_with_another_time_is_not_deduplicated_with_a_statement_line(
    shop: Shop, bank: SandboxBankClient
) -> None:
    paid_at = now_to_the_second()
    code = replace(shop, codes_made_at=paid_at - timedelta(days=2)).qr_code()
    reported = bank.notification(code, paid_at=paid_at - timedelta(days=1))
    bank.post(reported)
    import_file(bot_file(credit_line(code, paid_at)))
    moved = reported | {"paid_at": bank.notification(code, paid_at=paid_at)["paid_at"]}
    bank.post(moved)
    assert BankNotification.objects.filter(result="conflict").count() == 1
    assert BankTransaction.objects.get(source="statement").later_bank_reference == ""


@pytest.mark.slow
def test_two_payments_in_one_second_are_two_lines_and_two_bank_transactions(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    bank.notify(code, paid_at=paid_at)
    line = credit_line(code, paid_at)
    assert shown(bot_file(line, line)) == [("attached", "applied"), ("new", "duplicate")]
    assert list(StatementLine.objects.order_by("line_number").values_list("occurrence", flat=True)) == [1, 2]
    bank.notify(code, paid_at=paid_at)
    assert BankTransaction.objects.count() == 2


@pytest.mark.slow
def test_importing_a_statement_again_changes_nothing(shop: Shop) -> None:
    body = bot_file(credit_line(shop.qr_code(), clock.now()), detail(), detail(), detail(sign="D"))
    assert [kind for kind, _ in shown(body)] == ["new"] * 4
    before = list(BankTransaction.objects.order_by("id").values())
    assert [kind for kind, _ in shown(body)] == [ALREADY_STORED] * 4
    assert list(BankTransaction.objects.order_by("id").values()) == before
    assert (StatementLine.objects.count(), Statement.objects.count()) == (4, 2)
    again = Statement.objects.order_by("-created_at", "-id").first()
    assert again is not None
    assert (again.line_count, again.stored_count, again.duplicate_count) == (4, 4, 4)


def test_statement_line_is_recognized_with_another_line_number(shop: Shop) -> None:
    import_file(bot_file(detail(seq="000002")))
    whole_day = bot_file(detail(time="080000"), detail(seq="000003"))
    assert [kind for kind, _ in shown(whole_day)] == ["new", ALREADY_STORED]


def test_overlapping_statement_adds_only_new_lines(shop: Shop) -> None:
    morning = [detail(), detail(), detail(time="130000")]
    import_file(bot_file(*morning))
    assert [kind for kind, _ in shown(bot_file(*morning, detail()))] == [ALREADY_STORED] * 3 + ["new"]


@pytest.mark.slow
def test_import_of_the_same_day_in_another_format_changes_nothing(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    import_file(bot_file(credit_line(code, paid_at), credit_line(code, paid_at)))
    at, parsed = paid_at.astimezone(BANGKOK), thaiqr.parse(code["qr_data"])
    line = (
        f"{at:%Y-%m-%d},{at:%H:%M:%S},{parsed.biller_id},{parsed.reference1},,,1500.00,credit,S. Jaidee,014"
    )
    assert sorted(shown(csv_file(line, line))) == [(ALREADY_STORED, "applied"), (ALREADY_STORED, "duplicate")]
    assert (StatementLine.objects.count(), BankTransaction.objects.count()) == (2, 2)


def test_csv_file_with_reordered_columns_is_the_same_file(shop: Shop) -> None:
    import_file(csv_file(f"2026-11-21,12:00:00,{BILLER},R1,,,1500.00,credit,สมชาย,014"))
    turned = csv_file(
        f"x,014,สมชาย,credit,1500.00,,,R1,{BILLER},12:00:00,2026-11-21",
        header="branch,payer_bank_code,payer_name,type,amount,reference3,reference2,reference1,biller_id,time,date",
    )
    assert shown(turned) == [(ALREADY_STORED, "unmatched")]


@pytest.mark.slow
def test_unmatched_statement_line_is_held_like_an_unmatched_callback(
    shop: Shop, bank: SandboxBankClient
) -> None:
    bank.notify(shop.qr_code(), reference1="ONEUNKNOWN0000000000")
    assert shown(bot_file(detail(ref1="ANOTHERUNKNOWN000000"))) == [("new", "unmatched")]
    one, other = BankTransaction.objects.order_by("received_at", "id")
    for name in ("match_result", "merchant_id", "payment_id", "resolution_state", "resolved_at"):
        assert getattr(one, name) == getattr(other, name), name
    assert [shape(one), shape(other)] == [shape(one)] * 2


def shape(bank_transaction: BankTransaction) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """Return the journals of the bank transaction."""
    return [
        (journal.type, journal.amount, sorted(journal.entries.values_list("account_id", "amount")))
        for journal in Journal.objects.filter(subject_id=bank_transaction.id)
    ]


@pytest.mark.slow
def test_debit_line_reverses_the_only_matching_credit(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    credit = credit_line(code, paid_at)
    debit = credit_line(code, paid_at + timedelta(minutes=5), sign="D")
    assert shown(bot_file(credit, debit)) == [("new", "applied"), ("new", "reversed")]
    first, second = BankTransaction.objects.order_by("kind")
    assert (first.kind, second.kind) == ("credit", "reversal")
    assert first.bank_reference == second.bank_reference


@pytest.mark.slow
def test_debit_line_with_two_matching_credits_is_an_exception(shop: Shop) -> None:
    credits = [detail(time="120000"), detail(time="120001")]
    assert shown(bot_file(*credits, detail(sign="D", time="130000")))[-1] == ("new", "unmatched")


def test_debit_line_without_a_credit_is_an_exception(shop: Shop) -> None:
    assert shown(bot_file(detail(sign="D"))) == [("new", "unmatched")]


@pytest.mark.slow
def test_debit_line_is_deduplicated_with_a_reported_reversal(shop: Shop, bank: SandboxBankClient) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    reported = bank.notification(code, paid_at=paid_at)
    bank.post(reported)
    bank.post(reported | {"type": "reversal"})
    lines = [credit_line(code, paid_at), credit_line(code, paid_at + timedelta(seconds=3), sign="D")]
    assert shown(bot_file(*lines)) == [("attached", "applied"), ("attached", "reversed")]


@pytest.mark.slow
def test_reversal_reported_after_a_debit_line_is_deduplicated(shop: Shop, bank: SandboxBankClient) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    import_file(
        bot_file(credit_line(code, paid_at), credit_line(code, paid_at + timedelta(seconds=3), sign="D"))
    )
    bank.notify(code, type="reversal", paid_at=paid_at + timedelta(seconds=3))
    assert BankTransaction.objects.count() == 2


@pytest.mark.slow
def test_reported_reversal_reverses_a_credit_known_only_from_a_line(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    import_file(bot_file(credit_line(code, paid_at)))
    bank.notify(code, type="reversal", transaction_id="T1", paid_at=paid_at + timedelta(seconds=3))
    assert sorted(BankTransaction.objects.values_list("match_result", flat=True)) == ["applied", "reversed"]
    bank.notify(code, transaction_id="T1", paid_at=paid_at)
    assert BankTransaction.objects.count() == 2


@pytest.mark.slow
def test_credit_line_is_reversed_by_an_earlier_reversal(shop: Shop, bank: SandboxBankClient) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    bank.notify(code, type="reversal", transaction_id="T1", paid_at=paid_at + timedelta(seconds=3))
    assert BankTransaction.objects.get().match_result == "unmatched"
    import_results(
        bot_file(credit_line(code, paid_at), credit_line(code, paid_at + timedelta(seconds=3), sign="D"))
    )
    assert sorted(BankTransaction.objects.values_list("kind", "match_result")) == [
        ("credit", "applied"),
        ("reversal", "reversed"),
    ]


@pytest.mark.slow
def test_reversal_between_storing_and_matching_reverses_the_line(
    shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, paid_at, unknown = shop.qr_code(), now_to_the_second(), "NOBODYKNOWSTHIS00000"
    later = paid_at + timedelta(seconds=3)
    reversal_report = bank.notification(code, type="reversal", reference1=unknown, paid_at=later)
    apply_together = importing._apply_together

    def report_reversal_and_match(stored: Any, now: datetime) -> set[str]:
        assert bank.post(reversal_report).status_code == 200
        return apply_together(stored, now)

    monkeypatch.setattr(importing, "_apply_together", report_reversal_and_match)
    import_file(bot_file(credit_line(code, paid_at, ref1=unknown)))
    credit, reversal = BankTransaction.objects.order_by("kind")
    assert (credit.match_result, credit.resolution_state) == ("unmatched", "taken_back")
    assert (reversal.match_result, reversal.resolution_state) == ("reversed", "")


def test_unreadable_statement_line_is_one_exception(shop: Shop) -> None:
    broken = detail(amount="12,500.00")
    for _ in range(2):
        (result,) = import_results(bot_file(broken))
        assert (result.result, result.error) == ("unreadable", "the amount cannot be '000012,500.00'")
    notification = BankNotification.objects.get()
    assert (notification.source, notification.result) == ("statement", "unreadable")
    assert notification.body == broken
    assert StatementLine.objects.get().line == broken
    assert not BankTransaction.objects.exists()


def test_statement_with_different_totals_has_a_problem_and_keeps_all_lines(shop: Shop) -> None:
    summary = import_file(bot_file(detail(), end=trailer(credit=300_000, credits=2)))
    assert not summary.is_clean
    assert "states 2 credits of 3,000.00 THB" in summary.statement.problems
    assert BankTransaction.objects.count() == 1


def test_next_import_matches_lines_left_by_a_crash(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    body = bot_file(credit_line(shop.qr_code(), clock.now()), detail())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(importing, "_apply", interrupted)
        import_file(body)
    assert set(BankTransaction.objects.values_list("match_result", flat=True)) == {""}
    assert Statement.objects.get().completed_at is None
    assert shown(body) == [(ALREADY_STORED, "applied"), (ALREADY_STORED, "unmatched")]
    assert matching.apply_unapplied(now=clock.now() + timedelta(minutes=1)) == 0


def interrupted(*args: Any, **kwargs: Any) -> None:
    raise KeyboardInterrupt


def test_import_for_an_unknown_bank_is_refused(shop: Shop) -> None:
    with pytest.raises(UnknownBank):
        import_file(bot_file(detail()), bank="nobody")
    assert not Statement.objects.exists()


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE reconciliation_statementline SET result = 'attached'",
        "UPDATE reconciliation_statementline SET amount = 1",
        "UPDATE reconciliation_statement SET problems = ''",
        "UPDATE reconciliation_statement SET file_name = 'other'",
        "DELETE FROM reconciliation_statementline",
        "DELETE FROM reconciliation_statement",
    ],
)
def test_statements_are_append_only(shop: Shop, attack: str) -> None:
    import_file(bot_file(detail()))
    with pytest.raises(DatabaseError, match=r"a (statement|line of a statement|completed import) "):
        sqlstates.run(attack)


@pytest.mark.slow
def test_statement_line_is_sealed_and_kept_byte_for_byte(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    import_file(bot_file(credit_line(code, paid_at)))
    line = StatementLine.objects.get()
    assert str(thaiqr.parse(code["qr_data"]).reference1) not in line.line_sealed
    assert line.line == credit_line(code, paid_at)


# --- the statements of the sandbox bank -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.slow
def test_sandbox_statement_matches_the_payments(shop: Shop, form: str) -> None:
    now, code = clock.now(), shop.qr_code()
    sandbox.execute(sandbox.plan(qr_data=code["qr_data"], scenario="reversed", now=now), now=now)
    day, entries = now.astimezone(BANGKOK).date(), SandboxEntry.objects.order_by("occurred_at", "id")
    biller_id = entries[0].payment.biller_id
    body = b"".join(FORMATS[form].write(biller_id, day, entries))
    assert shown(body) == [("new", "applied"), ("new", "reversed")]
    payer = entries[0].payment
    bank_transaction = BankTransaction.objects.get(kind="credit")
    assert (bank_transaction.payer_name, bank_transaction.payer_bank_code) == (
        payer.payer_name,
        payer.payer_bank_code,
    )
    assert import_file(body).is_clean
