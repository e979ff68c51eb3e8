"""A month is closed once, signed, in the order of the months, and only if nothing about it is open."""

import base64
import io
import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from pypdf import PdfReader
from pytest_django import Settings

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import clock, ids
from ledger import services as ledger
from ledger.journal_types import JournalType
from ledger.models import Journal
from ledger.services import Credit, Fee
from operations.audit.daily_close import signing
from operations.audit.daily_close.closing import NotClosable
from operations.audit.month_close import categories, closing
from operations.models import MonthClose
from reconciliation.models import HELD_RESULTS, MatchResult, ResolutionState
from settlements.models import OpenQuestion
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.operations.audit.test_daily_close import damage
from tests.reconciliation.builders import Seller, decide, get_page, staff_client
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    detail,
    import_file,
    open_shop_with_biller,
)
from tests.settlements.conftest import ReportingAcquirer

KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
LIST = "/admin/operations/monthclose/"
OCTOBER, NOVEMBER, DECEMBER = date(2026, 10, 1), date(2026, 11, 1), date(2026, 12, 1)
SALE, FEE = 100_000, Fee(3_650, 256)
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def key(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = KEY


@pytest.fixture
def live(db: None) -> Shop:
    return open_shop("Roti House", "live")


@pytest.fixture
def sold(live: Shop, noon: datetime) -> Iterator[Any]:
    """A payment by QR code in November, and the clock on the 3rd of December."""
    with time_machine.travel(noon, tick=False) as machine:
        sell(live, noon)
        machine.move_to(noon + timedelta(days=12))
        yield machine


def sell(shop: Shop, now: datetime, *, source: str = "bank:scb") -> str:
    """Post a payment with a fee. Returns its id."""
    payment = ids.new("pay_", now)
    credit = Credit(shop.merchant.id, payment, SALE, fee=FEE)
    with transaction.atomic():
        ledger.credit([credit], type=JournalType.PAYMENT, source=source, now=now)
    return payment


def ask(now: datetime) -> OpenQuestion:
    made: OpenQuestion = OpenQuestion.objects.create(
        id=ids.new("oq_", now),
        kind="adjustment",
        acquirer="omise",
        subject="trxn_1",
        difference=-7,
        opened_at=now,
    )
    return made


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("close_month", *arguments, stdout=output, stderr=output)
    return output.getvalue()


def body_of(close: MonthClose) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(close.body)
    return found


def test_closed_month_has_the_totals_of_each_bank_and_of_all(sold: Any) -> None:
    made = closing.close(NOVEMBER, now=clock.now())
    body, net = body_of(made), SALE - FEE.total
    [scb] = body["parties"]
    assert scb == dict.fromkeys(categories.Category.values, 0) | {
        "party": "scb", "opening": 0, "payment": SALE, "fee": -FEE.amount, "vat": -FEE.vat, "closing": net
    }  # fmt: skip
    assert body["total"] == scb | {"party": "all"}
    assert (body["remainder"], body["open"], body["corrections"]) == (0, [], [])
    assert signing.is_valid(made.body, made.signature, signing.public_key())
    assert list(closing.findings()) == []


def test_next_month_opens_with_what_this_one_had(sold: Any, live: Shop) -> None:
    first = closing.close(NOVEMBER, now=clock.now())
    sell(live, clock.now())
    sold.shift(timedelta(days=31))
    second = body_of(closing.close(DECEMBER, now=clock.now()))
    assert second["previous"] == {"number": 1, "hash": first.hash}
    assert second["parties"][0]["opening"] == body_of(first)["parties"][0]["closing"]
    assert list(closing.findings()) == []


def test_command_shows_the_month_and_closes_it(sold: Any) -> None:
    shown = run("2026-11")
    assert "Fees" in shown
    assert shown.endswith("Remainder: 0.00 THB\n")
    assert not MonthClose.objects.exists()
    found = json.loads(run("2026-11", "--json"))
    assert (found["month"], found["remainder"], found["total"]["payment"]) == ("2026-11", 0, SALE)
    assert "close 1" in run("2026-11", "--sign")
    with pytest.raises(CommandError, match="The newest closed month is 2026-11"):
        run("2026-11", "--sign")


def test_command_fails_while_a_question_is_open_and_names_it(sold: Any, noon: datetime) -> None:
    question = ask(noon)
    with pytest.raises(CommandError, match=r"Questions are open: 1\. Remainder: 0\.07 THB"):
        run("2026-11", "--sign")
    output = io.StringIO()
    with pytest.raises(CommandError):
        call_command("close_month", "2026-11", stdout=output)
    assert question.pk in output.getvalue()
    assert "The acquirer changed what we receive" in output.getvalue()
    assert not MonthClose.objects.exists()


@pytest.mark.parametrize(
    ("month", "refusal"),
    [
        ("2026-12", "2026-12 is not over"),
        ("2030-01", "2030-01 is not over"),
        ("2026-10", "2026-10 is before the first entry of live money. --sandbox shows"),
        ("2026-13", "'2026-13' is not a month"),
        ("2569-11", "is not a month"),
        ("November", "'November' is not a month"),
    ],
)
def test_month_that_cannot_be_closed_is_refused(sold: Any, month: str, refusal: str) -> None:
    for more in ([], ["--sign"]):
        with pytest.raises(CommandError, match=refusal):
            run(month, *more)
    assert not MonthClose.objects.exists()


def test_month_is_over_ten_minutes_after_its_end(sold: Any) -> None:
    end = closing.bounds(NOVEMBER)[1]
    with pytest.raises(NotClosable):
        closing.close(NOVEMBER, now=end + timedelta(minutes=9))
    closing.close(NOVEMBER, now=end + timedelta(minutes=10))


def test_months_of_the_sandbox_are_shown_apart_and_not_signed(
    sold: Any, shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    sold.move_to(noon)
    Seller(shop, bank).unmatched()
    sold.shift(timedelta(days=12))
    with pytest.raises(CommandError, match="Questions are open: 1"):
        run("2026-11", "--sandbox")
    with pytest.raises(CommandError, match="not real"):
        run("2026-11", "--sandbox", "--sign")
    assert "close 1" in run("2026-11", "--sign")


def test_months_are_closed_in_order(sold: Any, live: Shop) -> None:
    closing.close(NOVEMBER, now=clock.now())
    sold.shift(timedelta(days=70))
    with pytest.raises(NotClosable, match="2026-11"):
        closing.close(date(2027, 1, 1), now=clock.now())
    closing.close(DECEMBER, now=clock.now())
    assert list(MonthClose.objects.order_by("number").values_list("month", flat=True)) == [NOVEMBER, DECEMBER]


def test_simultaneous_closes_make_one(sold: Any) -> None:
    refused = []

    def try_to_close() -> None:
        try:
            closing.close(NOVEMBER, now=clock.now())
        except NotClosable as error:
            refused.append(error)

    run_concurrently(*[try_to_close] * 4)
    assert (MonthClose.objects.count(), len(refused)) == (1, 3)
    assert AuditRecord.objects.filter(act=Act.MONTH_CLOSED).count() == 1


def test_database_closes_months_in_order_and_never_changes_one(sold: Any) -> None:
    made = closing.close(NOVEMBER, now=clock.now())
    copy = {"hash": "0" * 64, "previous_hash": made.hash, "body": "{}"}
    for number, month in (
        (2, OCTOBER),
        (2, date(2027, 1, 1)),
        (2, date(2026, 12, 2)),
        (3, DECEMBER),
        (2, NOVEMBER),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            MonthClose.objects.create(number=number, month=month, **copy)
    for sql in ("UPDATE {} SET body = ''", "DELETE FROM {}", "TRUNCATE {}"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.format("operations_monthclose"))


def test_nothing_is_posted_in_a_closed_month(sold: Any, live: Shop, noon: datetime) -> None:
    closing.close(NOVEMBER, now=clock.now())
    end = closing.bounds(NOVEMBER)[1]
    for at in (noon, end - timedelta(milliseconds=1)):
        with pytest.raises(IntegrityError, match="the month of this posting is closed"):
            sell(live, at)
    sell(live, end)
    assert Journal.objects.count() == 2
    assert list(closing.findings()) == []


def test_later_change_is_a_correction_in_the_next_month(sold: Any, live: Shop, noon: datetime) -> None:
    sold.move_to(noon)
    payment, question = sell(live, noon), ask(noon)
    OpenQuestion.objects.update(closed_at=noon, note="They will pay.")
    sold.shift(timedelta(days=12))
    closing.close(NOVEMBER, now=clock.now())
    with transaction.atomic():
        ledger.charge_fee(
            merchant_id=live.merchant.id,
            subject_id=payment,
            fee=Fee(100),
            source="bank:scb",
            is_unsettled=False,
            now=clock.now(),
        )
        ledger.correct_fee(
            merchant_id=live.merchant.id,
            subject_id=payment,
            before=FEE,
            fee=Fee(3_000, 210),
            source="bank:scb",
            now=clock.now(),
        )
        ledger.book_difference(
            subject_id=question.pk, account="acquirer:omise", difference=-7, now=clock.now()
        )
        sell(live, clock.now())
    sold.shift(timedelta(days=31))
    expected = [
        {"month": "2026-11", "type": "fee", "subject": payment, "amount": 100},
        {"month": "2026-11", "type": "fee_returned", "subject": payment, "amount": FEE.total},
        {"month": "2026-11", "type": "fee_added", "subject": payment, "amount": 3_210},
        {"month": "2026-11", "type": "difference_booked", "subject": question.pk, "amount": 7},
    ]
    assert f"Correction of 2026-11: fee: {payment}, 1.00 THB" in run("2026-12")
    assert body_of(closing.close(DECEMBER, now=clock.now()))["corrections"] == expected


TAMPERING = {
    "body": ("UPDATE operations_monthclose SET body = replace(body, '100000', '100001')", "was changed"),
    "signature": ("UPDATE operations_monthclose SET signature = 'x'", "was changed"),
    "missing": ("DELETE FROM operations_monthclose WHERE number = 1", "does not follow"),
    "amounts": ("UPDATE ledger_entry SET amount = amount + sign(amount)", "the ledger has other totals"),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_audit_finds_what_was_changed_after_a_close(sold: Any, kind: str) -> None:
    closing.close(NOVEMBER, now=clock.now())
    sold.shift(timedelta(days=31))
    closing.close(DECEMBER, now=clock.now())
    assert list(closing.findings()) == []
    sql, finding = TAMPERING[kind]
    damage(sql)
    assert any(finding in text for _, text in closing.findings())
    output = io.StringIO()
    with pytest.raises(CommandError, match="Differences"):
        call_command("audit", stdout=output, stderr=io.StringIO())
    assert "closed months: close of 2026-" in output.getvalue()


def test_money_that_only_a_statement_reports_is_open_until_somebody_confirms_it(
    bank: SandboxBankClient, noon: datetime
) -> None:
    shop = open_shop_with_biller("Krapow House")
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code()
        import_file(bot_file(credit_line(code, clock.now())))
        found = closing.read(NOVEMBER, clock.now(), is_sandbox=True)
    assert [each.kind for each in found.open] == ["unconfirmed"]
    assert [(each["category"], each["count"]) for each in found.lines] == [("payment", 1)]


def test_bank_transaction_that_its_statement_does_not_have_is_open(
    bank: SandboxBankClient, noon: datetime
) -> None:
    shop = open_shop_with_biller("Krapow House")
    seller = Seller(shop, bank)
    with time_machine.travel(noon, tick=False):
        missing = seller.sale()
        import_file(bot_file(credit_line(code := shop.qr_code(), clock.now())))
        bank.notify(code)
        found = closing.read(NOVEMBER, clock.now(), is_sandbox=True)
    assert [(each.kind, each.subject) for each in found.open] == [("in_no_statement", missing.pk)]


def test_line_that_nobody_can_read_is_open_until_somebody_dismisses_it(
    bank: SandboxBankClient, noon: datetime
) -> None:
    open_shop_with_biller("Krapow House")
    with time_machine.travel(noon, tick=False):
        import_file(bot_file(detail(amount="?")))
        [unreadable] = closing.read(NOVEMBER, clock.now(), is_sandbox=True).open
        assert unreadable.kind == "exception_unreadable"
        decide("dismiss", unreadable.subject)
        assert closing.read(NOVEMBER, clock.now(), is_sandbox=True).open == []


def test_debt_and_cards_on_the_way_are_shown_and_stop_nothing(sold: Any, live: Shop, noon: datetime) -> None:
    sold.move_to(noon)
    payment = sell(live, noon)
    with transaction.atomic():
        ledger.reverse(
            merchant_id=live.merchant.id, subject_id=ids.new("btx_", noon), source_id=payment,
            amount=3 * SALE, to="bank:scb", now=noon,
        )  # fmt: skip
    found = closing.read(NOVEMBER, clock.now())
    assert [(each.kind, each.amount) for each in found.on_the_way] == [
        ("debt", 3 * SALE - 2 * (SALE - FEE.total))
    ]
    assert found.open == []


def test_held_money_without_an_exception_is_open(sold: Any, noon: datetime) -> None:
    sold.move_to(noon)
    with transaction.atomic():
        ledger.hold({ids.new("btx_", noon): 5_000}, source="bank:scb", now=noon)
    found = closing.read(NOVEMBER, clock.now())
    assert [(each.kind, each.amount) for each in found.open] == [("unnamed", 5_000)]


def test_money_of_an_acquirer_that_no_payment_and_no_question_has_is_open(
    sold: Any, live: Shop, noon: datetime, acquirer: ReportingAcquirer
) -> None:
    sold.move_to(noon)
    acquirer.charge(live.merchant)
    assert closing.read(NOVEMBER, noon).open == []
    with transaction.atomic():
        ledger.receive_transfer(
            subject_id="atr_1", acquirer="omise", received=5_000, cost=0, fee=ledger.NO_FEE, now=noon
        )
    sold.shift(timedelta(days=12))
    found = closing.read(NOVEMBER, clock.now())
    assert [(each.kind, each.party, each.amount) for each in found.open] == [
        ("not_on_the_way", "omise", -5_000)
    ]
    with pytest.raises(NotClosable, match="Remainder: 50"):
        closing.close(NOVEMBER, now=clock.now())
    assert closing.read(NOVEMBER, clock.now(), is_sandbox=True).open == []


def test_entries_of_no_category_are_open(sold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(categories.OF_JOURNALS, JournalType.PAYMENT)
    found = closing.read(NOVEMBER, clock.now())
    assert [(each.kind, each.party, each.amount) for each in found.open] == [("unexplained", "scb", SALE)]


def test_every_type_of_journal_has_a_category_or_moves_only_money_of_merchants() -> None:
    internal = {"fee", "settled", "unsettled", "refund_reserved", "refund_released", "withdrawal_reserved"}
    internal |= {"withdrawal_released", "debt_repaid", "confirmed", "fee_added", "fee_returned"}
    assert set(JournalType.values) - set(categories.OF_JOURNALS) == internal


def test_page_shows_what_is_open_and_closes_the_month(sold: Any, noon: datetime) -> None:
    question = ask(noon)
    clerk = staff_client("malee", "view_monthclose", "close_month")
    page = get_page(clerk, LIST)
    assert "Questions are open: 1. Remainder: 0.07 THB." in page
    assert f"/admin/settlements/openquestion/{quote(question.pk)}/change/" in page
    form = {"reason": "All is explained.", "month": "2026-11-01"}
    url = f"{LIST}do/close-month/"
    token = clerk.get(url).context["form"].initial["token"]
    refused = clerk.post(url, form | {"token": token}, follow=True)
    assert "Remainder: 0.07 THB. Nothing changed." in refused.content.decode()
    OpenQuestion.objects.update(closed_at=noon, note="They will pay.")
    assert clerk.post(url, form | {"token": token}).status_code == 302
    assert "The newest closed month" not in get_page(clerk, LIST)
    record = AuditRecord.objects.get(act=Act.MONTH_CLOSED)
    assert (record.actor, record.reason, record.after["month"]) == ("staff:malee", form["reason"], "2026-11")
    assert MonthClose.objects.count() == 1


def test_closing_needs_the_permission_and_a_recent_proof(sold: Any) -> None:
    assert staff_client("viewer", "view_monthclose").get(f"{LIST}do/close-month/").status_code == 403
    clerk = staff_client("malee", "view_monthclose", "close_month")
    sold.shift(timedelta(minutes=20))
    answer = clerk.get(f"{LIST}do/close-month/")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/admin/confirm/")


def test_signed_file_and_print_have_the_same_month(sold: Any, tmp_path: Path) -> None:
    made = closing.close(NOVEMBER, now=clock.now())
    clerk = staff_client("somsri", "view_monthclose")
    file = tmp_path / "month.json"
    answer = clerk.get(f"{LIST}{made.pk}/download/")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="month-close-2026-11.json"'
    file.write_bytes(answer.content)
    output = io.StringIO()
    call_command("daily_close", "--check", str(file), "--key", signing.public_key(), stdout=output)
    assert made.hash in output.getvalue()
    printed = PdfReader(io.BytesIO(clerk.get(f"{LIST}{made.pk}/print/").content))
    text = "\n".join(page.extract_text() for page in printed.pages)
    assert "Payments 1,000.00" in text
    assert made.hash in "".join(text.split())
    assert "Payments" in get_page(clerk, f"{LIST}{made.pk}/change/")


def test_process_without_a_key_says_what_to_run(sold: Any, settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = ""
    clerk = staff_client("malee", "view_monthclose", "close_month")
    refused = clerk.get(f"{LIST}do/close-month/", follow=True)
    assert "close_month 2026-11 --sign" in refused.content.decode()
    with pytest.raises(CommandError, match="CLOSE_SIGNING_KEY"):
        run("2026-11", "--sign")


def test_every_state_of_a_bank_transaction_has_a_category_or_is_open() -> None:
    known = {*MatchResult.values, *ResolutionState.values} - set(categories.OF_LINES)
    assert known == {MatchResult.PENDING, MatchResult.DECLINED, *HELD_RESULTS}
