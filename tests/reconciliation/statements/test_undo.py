"""An import that nobody has acted on is undone; money that was credited, told or closed never is."""

import base64
import io
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from audit_trail.acts import Act, ActRefused
from audit_trail.models import AuditRecord
from core import clock, money
from ledger import accounts, queries
from ledger.models import Journal
from merchants.models import Merchant
from operations.audit.daily_close import closing
from payments.models import Payment
from reconciliation.exceptions import confirmations, resolutions
from reconciliation.matching import services as matching
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ReconciliationException,
    Resolution,
    Statement,
    StatementLine,
)
from reconciliation.statements import (
    importing,
    line_storage,
    lines,
    reconciliation,
    statement_file,
    undo,
)
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.context import acting_as
from tests.reconciliation.builders import Seller, decide
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    csv_file,
    detail,
    import_file,
    open_shop_with_biller,
)
from tests.reconciliation.statements.test_fees import WITH_FEE, with_fee
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, sqlstate
from webhooks.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
STORED = (Statement, StatementLine, BankTransaction, BankNotification, Event, Journal, Payment)
NOTE = "The file of another shop."
UNKNOWN = [detail(ref1=f"NOBODYKNOWSTHIS{number:05d}") for number in range(3)]


def undone(statement: Statement, now: Any = None) -> str:
    with acting_as("staff:somsri"):
        return undo.undo(statement.pk, note=NOTE, now=now or clock.now())


def suspense() -> int:
    return queries.read_balances([accounts.SANDBOX_SUSPENSE], None).get(accounts.SANDBOX_SUSPENSE, 0)


def is_refused(statement: Statement, text: str) -> None:
    before = (suspense(), StatementLine.objects.count(), ReconciliationException.objects.count())
    with pytest.raises(ActRefused, match=re.escape(text)):
        undone(statement)
    assert before == (suspense(), StatementLine.objects.count(), ReconciliationException.objects.count())
    assert not Statement.objects.filter(undone_at__isnull=False).exists()
    # The database refuses it too.
    wanted = "UPDATE reconciliation_statement SET undone_at = now() WHERE id = %s"
    assert sqlstate(wanted, statement.pk) in (CHECK_VIOLATION, NOT_ALLOWED)


def test_undo_takes_back_all_that_only_the_import_brought(shop: Shop) -> None:
    caller, code, paid_at = SandboxBankClient(new_client()), shop.qr_code(), clock.now()
    caller.post(caller.notification(code, paid_at=paid_at))
    made = import_file(bot_file(*UNKNOWN, credit_line(code, paid_at), detail(amount="?"))).statement
    assert suspense() == 450_000
    told = undone(made)
    leaves = f"Unknown money that leaves suspense: {money.display(450_000)} (3)"
    assert f"Lines that go: 5. {leaves}. Exceptions of unreadable lines that close: 1." in told
    assert suspense() == 0
    day = date(2026, 11, 21)  # of the unknown lines
    assert not [*reconciliation.find_differences("sandbox", day)]
    assert reconciliation.compare_totals("sandbox", day).ours["credits"] == 0
    assert not StatementLine.objects.exists()
    assert not ReconciliationException.objects.exists()
    assert set(
        BankTransaction.objects.filter(source="statement").values_list("resolution_state", flat=True)
    ) == {"undone"}
    assert shop.payment(code["payment_id"])["status"] == "succeeded"  # by the callback
    record = AuditRecord.objects.get(act=Act.STATEMENT_UNDONE)
    assert (record.actor, record.reason, record.object_id) == ("staff:somsri", NOTE, made.pk)
    assert set(Resolution.objects.values_list("type", "actor")) == {
        ("undone", "staff:somsri"), ("dismissed", "staff:somsri"),
    }  # fmt: skip


def test_later_import_brings_the_same_lines_again(shop: Shop) -> None:
    body = bot_file(*UNKNOWN, detail(amount="?"))
    undone(import_file(body).statement)
    again = import_file(body)
    assert (again.counts["new"], again.counts["unreadable"]) == (3, 1)
    assert suspense() == 450_000
    assert ReconciliationException.objects.count() == 4
    undone(again.statement)
    assert suspense() == 0


def test_callback_after_the_undo_is_money_of_its_own(shop: Shop) -> None:
    seller, now = Seller(shop, SandboxBankClient(new_client())), clock.now()
    code = shop.qr_code()
    line = credit_line(code, now, ref1="NOBODYKNOWSTHIS00000")
    undone(import_file(bot_file(line)).statement)
    reported = seller.report(code, reference1="NOBODYKNOWSTHIS00000", paid_at=now)
    assert (reported.source, reported.resolution_state) == ("callback", "")
    assert suspense() == reported.amount


def test_import_whose_lines_a_later_one_knew_is_not_undone(shop: Shop) -> None:
    first = import_file(bot_file(UNKNOWN[0])).statement
    second = import_file(bot_file(UNKNOWN[0], UNKNOWN[1])).statement
    is_refused(first, "Another import knew lines of earlier ones already: undo it first.")
    undone(second)
    undone(first)
    assert suspense() == 0


def test_import_that_began_before_and_knew_its_lines_is_undone_first(shop: Shop) -> None:
    """Several workers import: the import of a long file ends after that of a later, short one."""
    file = statement_file.open_file(io.BytesIO(bot_file(UNKNOWN[0], UNKNOWN[1])), "long.txt")
    with acting_as("staff:malee"):
        long = importing.begin(file, bank="sandbox", now=clock.now() - timedelta(minutes=1))
    short = import_file(bot_file(UNKNOWN[0])).statement
    line_storage.store_lines(long, list(file.read_lines(lines.FileProblems())), now=clock.now())
    is_refused(short, "Another import knew lines of earlier ones already: undo it first.")


def test_money_of_a_merchant_that_has_moved_is_not_undone(shop: Shop) -> None:
    made = import_file(bot_file(UNKNOWN[0])).statement
    biller_id = BankTransaction.objects.get().biller_id
    Merchant.objects.filter(pk=shop.merchant.pk).update(
        biller_id=biller_id, suspended_at=clock.now(), moved_at=clock.now()
    )
    is_refused(made, "This import brought money of a merchant that has moved to another instance.")


def test_nobody_confirms_money_of_an_undone_import(shop: Shop) -> None:
    undone(import_file(bot_file(UNKNOWN[0])).statement)
    undone_money = BankTransaction.objects.get()
    with acting_as("staff:second"), pytest.raises(ActRefused, match="was undone: it does not count"):
        confirmations.confirm_manually(undone_money.pk, note=NOTE, now=clock.now())


def test_credited_money_is_never_taken_back(shop: Shop) -> None:
    code = shop.qr_code()
    made = import_file(bot_file(UNKNOWN[0], credit_line(code, clock.now()))).statement
    is_refused(made, f"The money of line 3 was credited to payment {code['payment_id']}.")


def test_what_a_merchant_was_told_is_never_taken_back(shop: Shop) -> None:
    code = shop.qr_code()
    made = import_file(bot_file(credit_line(code, clock.now(), amount=149_900))).statement
    is_refused(made, f"The merchant was told about the money of line 2, for payment {code['payment_id']}.")


def test_decided_money_is_never_taken_back(shop: Shop) -> None:
    code = shop.qr_code()
    made = import_file(bot_file(UNKNOWN[0])).statement
    decide("attach", BankTransaction.objects.get(), payment_id=code["payment_id"])
    is_refused(made, "Somebody has decided about the money of line 2.")


def test_money_that_the_bank_reports_too_is_never_taken_back(shop: Shop) -> None:
    caller, code, now = SandboxBankClient(new_client()), shop.qr_code(), clock.now()
    made = import_file(bot_file(credit_line(code, now, ref1="NOBODYKNOWSTHIS00000"))).statement
    caller.post(caller.notification(code, reference1="NOBODYKNOWSTHIS00000", paid_at=now))
    is_refused(made, "The bank itself, or a second person, has confirmed the money of line 2.")


def test_debit_and_named_fee_prevent_the_undo(shop: Shop) -> None:
    is_refused(
        import_file(bot_file(detail(sign="D"))).statement, "Line 2 says that the bank took money back."
    )
    caller, code, paid_at = SandboxBankClient(new_client()), shop.qr_code(), clock.now()
    caller.post(caller.notification(code, paid_at=paid_at))
    made = import_file(csv_file(with_fee(code, "1.00", "0.07"), header=WITH_FEE)).statement
    is_refused(made, f"Line 2 named the fee of payment {code['payment_id']}.")


def test_running_import_and_second_undo_are_refused(shop: Shop) -> None:
    made = import_file(bot_file(UNKNOWN[0])).statement
    undone(made)
    with pytest.raises(ActRefused, match="This import was undone already"):
        undone(made)
    file = statement_file.open_file(io.BytesIO(bot_file(UNKNOWN[1])), "day.txt")
    with acting_as("staff:malee"):
        running = importing.begin(file, bank="sandbox", now=clock.now())
    with pytest.raises(ActRefused, match="This import has not ended"):
        undone(running)
    with pytest.raises(ActRefused, match="There is no statement with this id"):
        undo.undo("stm_2", note=NOTE, now=clock.now())


@pytest.mark.django_db(transaction=True)
def test_import_of_a_closed_day_stays(settings: Any) -> None:
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
    open_shop_with_biller("Closed")
    made = import_file(bot_file(UNKNOWN[0])).statement
    tomorrow = clock.now() + timedelta(days=1, minutes=11)
    closing.close(closing.last_closable_day(tomorrow), now=tomorrow)
    is_refused(made, "The day or month of this import is closed.")


@pytest.mark.parametrize(
    "attack",
    [
        "DELETE FROM reconciliation_statementline",
        "TRUNCATE reconciliation_statementline",
        "UPDATE reconciliation_banktransaction SET resolution_state = 'undone', resolved_at = now()",
        "UPDATE reconciliation_statement SET undone_at = now()",  # and its lines stay
        "UPDATE reconciliation_statement SET undone_at = now(), problems = 'x'",
    ],
)
def test_database_refuses_a_part_of_an_undo(shop: Shop, attack: str) -> None:
    import_file(bot_file(*UNKNOWN))
    assert sqlstate(attack) in (CHECK_VIOLATION, NOT_ALLOWED)


def test_undone_money_and_its_statement_never_change(shop: Shop) -> None:
    undone(import_file(bot_file(UNKNOWN[0])).statement)
    for change in (
        "UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL",
        "UPDATE reconciliation_banktransaction SET later_bank_reference = 'x'",
        "UPDATE reconciliation_banktransaction SET is_confirmed = true",
        "UPDATE reconciliation_statement SET undone_at = NULL",
        "UPDATE reconciliation_statement SET undone_at = now()",
    ):
        assert sqlstate(change) in (CHECK_VIOLATION, NOT_ALLOWED), change


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_decision_callback_and_import_at_the_moment_of_an_undo() -> None:
    """Whoever comes first wins: the money counts once, and the books agree."""
    shop = open_shop_with_biller("Race")
    caller = SandboxBankClient(new_client())
    for number in range(8):
        code, now, reference = shop.qr_code(), clock.now(), f"NOBODYKNOWSTHAT{number:05d}"
        body = bot_file(credit_line(code, now, ref1=reference))
        statement = import_file(body).statement
        held = BankTransaction.objects.get(reference1=reference)

        def attach(held: BankTransaction = held, payment_id: str = code["payment_id"]) -> None:
            with acting_as("staff:finance"):
                resolutions.attach(held.pk, payment_id=payment_id, note=NOTE, now=clock.now())

        rivals: list[Callable[[], Any]] = [
            attach,
            partial(import_file, body),
            partial(caller.post, caller.notification(code, reference1=reference, paid_at=now)),
        ]
        run_concurrently(_quietly(partial(undone, statement)), _quietly(rivals[number % 3]))
        matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
        held.refresh_from_db()
        is_undone = Statement.objects.get(pk=statement.pk).undone_at is not None
        assert is_undone == (held.resolution_state == "undone")
        counting = BankTransaction.objects.filter(reference1=reference).exclude(resolution_state="undone")
        assert counting.count() <= 1
        assert is_undone or counting.count() == 1
        assert not StatementLine.objects.filter(bank_transaction__resolution_state="undone").exists()
        connection.close()


def _quietly(act: Callable[[], Any]) -> Callable[[], Any]:
    """What loses the race is refused: staff read why, and a bank sends its notification again."""

    def run() -> None:
        try:
            act()
        except ActRefused:
            return

    return run


OUTCOMES = ["applied", "attached", "known", "late", "unmatched", "unreadable"]


def of_every_kind(shop: Shop) -> bytes:
    """A file with a line of each outcome of a credit."""
    caller, codes, now = SandboxBankClient(new_client()), [shop.qr_code() for _ in range(3)], clock.now()
    caller.post(caller.notification(codes[0], paid_at=now))
    import_file(bot_file(UNKNOWN[0]))
    return bot_file(
        credit_line(codes[0], now), UNKNOWN[0], UNKNOWN[1], credit_line(codes[1], now),
        credit_line(codes[2], now + timedelta(days=1)), detail(amount="?"),
    )  # fmt: skip


def test_dry_run_says_what_the_import_does_then_and_stores_nothing(shop: Shop) -> None:
    body = of_every_kind(shop)
    file, now = statement_file.open_file(io.BytesIO(body), "day.txt"), clock.now()
    before = [set(model._default_manager.values_list("pk", flat=True)) for model in STORED]
    with acting_as("staff:malee"):
        tried = importing.try_first(file, bank="sandbox", now=now)
    assert before == [set(model._default_manager.values_list("pk", flat=True)) for model in STORED]
    assert sorted(tried.counts) == OUTCOMES
    assert set(tried.counts.values()) == {1}
    lines: list[Any] = []
    import_file(body, on_batch=lines.extend)
    assert Counter(importing.outcome_of(line) for line in lines) == tried.counts
