"""A statement is a witness of its own: what others told it joins, what nobody told it makes known."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from banks.base import UnknownBank
from core import clock, thaiqr
from core.clock import BANGKOK
from receipts import services
from receipts.models import Notice, Receipt, Statement, StatementLine
from receipts.statements import importing, judging
from receipts.statements.storing import KNOWN
from tests.conftest import BankCaller, Shop
from tests.receipts.statements.cast import BILLER, bot, detail, line_of, load, plain, results_of, trailer
from transactions.models import Journal, Transaction
from webhooks.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]


def shown(body: bytes) -> list[tuple[str, str]]:
    return [(result.result, result.outcome) for result in results_of(body)]


def now_to_the_second() -> datetime:
    return clock.now().replace(microsecond=0)


def test_a_line_that_nobody_told_before_pays_its_code(shop: Shop) -> None:
    code = shop.qr_code()
    assert shown(bot(line_of(code, clock.now()))) == [("new", "applied")]
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    receipt = Receipt.objects.get()
    assert (receipt.source, receipt.payer_name, receipt.payer_bank_code) == ("statement", "สมชาย ใจดี", "014")
    assert receipt.bank_transaction_id.startswith("statement-")
    assert receipt.bank_transaction_id.endswith("-1")
    assert Event.objects.filter(type="payment.succeeded").count() == 1


def test_a_line_joins_the_receipt_of_a_callback(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    paid_at = now_to_the_second() + timedelta(milliseconds=321)
    bank.tell(code, paid_at=paid_at)
    assert shown(bot(line_of(code, paid_at))) == [("attached", "applied")]
    assert StatementLine.objects.get().receipt == Receipt.objects.get()
    assert Transaction.objects.count() == 1


def test_a_callback_joins_the_receipt_of_a_line_and_so_do_its_repeats(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    paid_at = now_to_the_second()
    load(bot(line_of(code, paid_at)))
    told = bank.notice(code, paid_at=paid_at + timedelta(milliseconds=999))
    for _ in range(2):
        assert bank.post(told).json() == {"status": "received"}
    receipt = Receipt.objects.get()
    assert receipt.transaction_id == receipt.also_known_as == told["transaction_id"]
    assert [notice.verdict for notice in receipt.notices.all()] == ["repeat", "repeat"]
    bank.post(told | {"amount": "1.00"})
    assert Notice.objects.filter(verdict="conflict").count() == 1
    assert (Receipt.objects.count(), Transaction.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "change", [{"satang": 149_999}, {"reference1": "ANOTHERREFERENCE0000"}, {"later": 86_400}]
)
def test_a_callback_about_other_money_does_not_join(
    shop: Shop, bank: BankCaller, change: dict[str, Any]
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    load(bot(line_of(code, paid_at)))
    bank.tell(code, paid_at=paid_at + timedelta(seconds=change.pop("later", 0)), **change)
    assert Receipt.objects.count() == 2
    assert not Receipt.objects.exclude(also_known_as="").exists()


def test_a_callback_that_is_known_already_never_joins_a_line(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    told = bank.notice(code, paid_at=paid_at - timedelta(days=1))
    bank.post(told)
    load(bot(line_of(code, paid_at)))
    moved = told | {"paid_at": bank.notice(code, paid_at=paid_at)["paid_at"]}
    bank.post(moved)
    assert Notice.objects.filter(verdict="conflict").count() == 1
    assert Receipt.objects.get(source="statement").also_known_as == ""


def test_two_payments_in_one_second_are_two_lines_and_two_receipts(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    bank.tell(code, paid_at=paid_at)
    line = line_of(code, paid_at)
    assert shown(bot(line, line)) == [("attached", "applied"), ("new", "duplicate")]
    assert list(StatementLine.objects.order_by("number").values_list("occurrence", flat=True)) == [1, 2]
    bank.tell(code, paid_at=paid_at)
    assert Receipt.objects.count() == 2


def test_importing_again_changes_nothing(shop: Shop) -> None:
    body = bot(line_of(shop.qr_code(), clock.now()), detail(), detail(), detail(sign="D"))
    assert [kind for kind, _ in shown(body)] == ["new"] * 4
    before = list(Receipt.objects.order_by("id").values())
    assert [kind for kind, _ in shown(body)] == [KNOWN] * 4
    assert list(Receipt.objects.order_by("id").values()) == before
    assert (StatementLine.objects.count(), Statement.objects.count()) == (4, 2)
    again = Statement.objects.order_by("-created_at", "-id").first()
    assert again is not None
    assert (again.total, again.done, again.known) == (4, 4, 4)


def test_a_line_keeps_its_identity_when_its_number_changes(shop: Shop) -> None:
    load(bot(detail(seq="000002")))
    whole_day = bot(detail(time="080000"), detail(seq="000003"))
    assert [kind for kind, _ in shown(whole_day)] == ["new", KNOWN]


def test_an_overlapping_file_adds_only_what_is_new(shop: Shop) -> None:
    morning = [detail(), detail(), detail(time="130000")]
    load(bot(*morning))
    assert [kind for kind, _ in shown(bot(*morning, detail()))] == [KNOWN] * 3 + ["new"]


def test_the_same_day_in_another_format_changes_nothing(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    load(bot(line_of(code, paid_at), line_of(code, paid_at)))
    at, parsed = paid_at.astimezone(BANGKOK), thaiqr.parse(code["qr_data"])
    line = (
        f"{at:%Y-%m-%d},{at:%H:%M:%S},{parsed.biller_id},{parsed.reference1},,,1500.00,credit,S. Jaidee,014"
    )
    assert sorted(shown(plain(line, line))) == [(KNOWN, "applied"), (KNOWN, "duplicate")]
    assert (StatementLine.objects.count(), Receipt.objects.count()) == (2, 2)


def test_a_csv_file_in_another_order_of_columns_is_the_same_file(shop: Shop) -> None:
    load(plain(f"2026-11-21,12:00:00,{BILLER},R1,,,1500.00,credit,สมชาย,014"))
    turned = plain(
        f"x,014,สมชาย,credit,1500.00,,,R1,{BILLER},12:00:00,2026-11-21",
        header="branch,payer_bank_code,payer_name,type,amount,reference3,reference2,reference1,biller_id,time,date",
    )
    assert shown(turned) == [(KNOWN, "unmatched")]


def test_what_nobody_asked_for_waits_for_staff_exactly_as_if_a_callback_had_told_it(
    shop: Shop, bank: BankCaller
) -> None:
    bank.tell(shop.qr_code(), reference1="ONEUNKNOWN0000000000")
    assert shown(bot(detail(ref1="ANOTHERUNKNOWN000000"))) == [("new", "unmatched")]
    one, other = Receipt.objects.order_by("received_at", "id")
    for name in ("outcome", "merchant_id", "payment_id", "resolution", "resolved_at"):
        assert getattr(one, name) == getattr(other, name), name
    assert [shape(one), shape(other)] == [shape(one)] * 2


def shape(receipt: Receipt) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """What the ledger says of it."""
    return [
        (journal.fact, journal.amount, sorted(journal.entries.values_list("account_id", "amount")))
        for journal in Journal.objects.filter(subject_id=receipt.id)
    ]


def test_a_debit_takes_back_the_one_credit_that_fits(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    credit = line_of(code, paid_at)
    debit = line_of(code, paid_at + timedelta(minutes=5), sign="D")
    assert shown(bot(credit, debit)) == [("new", "applied"), ("new", "reversed")]
    first, second = Receipt.objects.order_by("kind")
    assert (first.kind, second.kind) == ("credit", "reversal")
    assert first.bank_transaction_id == second.bank_transaction_id


def test_a_debit_that_two_credits_fit_waits_for_staff(shop: Shop) -> None:
    credits = [detail(time="120000"), detail(time="120001")]
    assert shown(bot(*credits, detail(sign="D", time="130000")))[-1] == ("new", "unmatched")


def test_a_debit_without_a_credit_waits_for_staff(shop: Shop) -> None:
    assert shown(bot(detail(sign="D"))) == [("new", "unmatched")]


def test_a_debit_joins_the_reversal_that_was_told(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    told = bank.notice(code, paid_at=paid_at)
    bank.post(told)
    bank.post(told | {"type": "reversal"})
    lines = [line_of(code, paid_at), line_of(code, paid_at + timedelta(seconds=3), sign="D")]
    assert shown(bot(*lines)) == [("attached", "applied"), ("attached", "reversed")]


def test_a_reversal_that_is_told_after_its_line_joins_it(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    load(bot(line_of(code, paid_at), line_of(code, paid_at + timedelta(seconds=3), sign="D")))
    bank.tell(code, type="reversal", paid_at=paid_at + timedelta(seconds=3))
    assert Receipt.objects.count() == 2


def test_a_reversal_that_is_told_of_a_credit_only_a_line_told_takes_it_back(
    shop: Shop, bank: BankCaller
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    load(bot(line_of(code, paid_at)))
    bank.tell(code, type="reversal", transaction_id="T1", paid_at=paid_at + timedelta(seconds=3))
    assert sorted(Receipt.objects.values_list("outcome", flat=True)) == ["applied", "reversed"]
    bank.tell(code, transaction_id="T1", paid_at=paid_at)
    assert Receipt.objects.count() == 2


def test_a_credit_that_is_told_only_by_its_line_is_taken_back_by_what_was_told_before(
    shop: Shop, bank: BankCaller
) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    bank.tell(code, type="reversal", transaction_id="T1", paid_at=paid_at + timedelta(seconds=3))
    assert Receipt.objects.get().outcome == "unmatched"
    results_of(bot(line_of(code, paid_at), line_of(code, paid_at + timedelta(seconds=3), sign="D")))
    assert sorted(Receipt.objects.values_list("kind", "outcome")) == [
        ("credit", "applied"),
        ("reversal", "reversed"),
    ]


def test_a_reversal_that_comes_before_its_line_is_judged_takes_the_money_back(
    shop: Shop, bank: BankCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, paid_at, unknown = shop.qr_code(), now_to_the_second(), "NOBODYKNOWSTHIS00000"
    told = bank.notice(code, type="reversal", reference1=unknown, paid_at=paid_at + timedelta(seconds=3))

    def tell_and_judge(*stored: Any, now: datetime) -> None:
        assert bank.post(told).status_code == 200
        judging.judge(*stored, now=now)

    monkeypatch.setattr(importing, "judge", tell_and_judge)
    load(bot(line_of(code, paid_at, ref1=unknown)))
    credit, reversal = Receipt.objects.order_by("kind")
    assert (credit.outcome, credit.resolution) == ("unmatched", "taken_back")
    assert (reversal.outcome, reversal.resolution) == ("reversed", "")


def test_a_line_that_nobody_can_read_waits_for_staff_once(shop: Shop) -> None:
    broken = detail(amount="12,500.00")
    for _ in range(2):
        (result,) = results_of(bot(broken))
        assert (result.result, result.why) == ("unreadable", "the amount cannot be '000012,500.00'")
    notice = Notice.objects.get()
    assert (notice.source, notice.verdict, notice.body) == ("statement", "unreadable", broken)
    assert StatementLine.objects.get().line == broken
    assert not Receipt.objects.exists()


def test_totals_that_differ_are_a_complaint_and_no_money_is_dropped(shop: Shop) -> None:
    summary = load(bot(detail(), end=trailer(credit=300_000, credits=2)))
    assert not summary.is_clean
    assert "tells of 2 credits of 3,000.00 THB" in summary.statement.complaints
    assert Receipt.objects.count() == 1


def test_what_a_crash_left_unjudged_is_judged_by_the_next_import(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = bot(line_of(shop.qr_code(), clock.now()), detail())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(importing, "judge", interrupted)
        load(body)
    assert set(Receipt.objects.values_list("outcome", flat=True)) == {""}
    assert Statement.objects.get().ended_at is None
    assert shown(body) == [(KNOWN, "applied"), (KNOWN, "unmatched")]
    assert services.apply_left(now=clock.now() + timedelta(minutes=1)) == 0


def interrupted(*args: Any, **kwargs: Any) -> None:
    raise KeyboardInterrupt


def test_a_bank_that_serves_nobody_is_refused(shop: Shop) -> None:
    with pytest.raises(UnknownBank):
        load(bot(detail()), bank="nobody")
    assert not Statement.objects.exists()


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE receipts_statementline SET result = 'attached'",
        "UPDATE receipts_statementline SET amount = 1",
        "UPDATE receipts_statement SET complaints = ''",
        "UPDATE receipts_statement SET name = 'other'",
        "DELETE FROM receipts_statementline",
        "DELETE FROM receipts_statement",
    ],
)
def test_a_statement_is_kept_as_it_was(shop: Shop, attack: str) -> None:
    load(bot(detail()))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)


def test_a_line_is_sealed_and_kept_byte_for_byte(shop: Shop) -> None:
    code, paid_at = shop.qr_code(), now_to_the_second()
    load(bot(line_of(code, paid_at)))
    line = StatementLine.objects.get()
    assert str(thaiqr.parse(code["qr_data"]).reference1) not in line.line_sealed
    assert line.line == line_of(code, paid_at)
