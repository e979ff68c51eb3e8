"""A merchant moves to another instance with its books, and nothing of it happens twice."""

import io
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

from audit_trail.chain import Verification
from banks import ReportedTransfer
from core import clock, vault
from merchants import services
from merchants.errors import MerchantMoved
from merchants.models import Merchant
from operations.audit import findings
from operations.audit.daily_close import closing
from operations.moving import exporting, tables
from operations.moving.file import Writer, read
from payments.models import Payment
from reconciliation.inquiries import batches, confirmation_inquiries, rate_limit, scan
from reconciliation.matching import order_completion, services as matching
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ConfirmationInquiry,
    Inquiry,
    ReconciliationException,
    Return,
    StatementLine,
)
from tests.approvals.builders import add_payout_account, decide_approval
from tests.audit import differences
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.console.conftest import served_by
from tests.error_messages import check_error
from tests.operations.audit import scenarios
from tests.operations.audit.scenarios import SCENARIOS, Serving
from tests.operations.evidence.builders import KEY
from tests.operations.moving.conftest import Instance
from tests.reconciliation.builders import RESOLVES, Seller, decide, parse, staff_client, state_of, suspense
from tests.reconciliation.claims.builders import claim_of
from tests.reconciliation.exceptions.test_acts_in_console import confirm
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    csv_file,
    import_file as import_statement,
    report_twice,
)
from tests.reconciliation.statements.test_fees import WITH_FEE, with_fee
from tests.refunds.builders import RefundShop
from tests.settlements.conftest import ReportingAcquirer
from tests.tables import count_rows
from tests.webhook_receiver import Receiver
from transfers import safe_mode
from webhooks import feed
from webhooks.delivery import dispatcher
from webhooks.models import Endpoint

__all__ = ["served_by"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "somtam.thaiqr"


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    """Test merchants may have their endpoints on this machine."""
    settings.WEBHOOK_ALLOWED_NETWORKS, settings.WEBHOOK_ALLOW_HTTP = [ip_network("127.0.0.0/8")], True


def register(shop: Shop, endpoint: Receiver) -> None:
    webhook = {"url": endpoint.url(), "events": ["payment.succeeded"]}
    assert shop.post("/v1/webhooks", webhook).status_code == 200


def later() -> datetime:
    return clock.now() + timedelta(minutes=1)


def deliver() -> int:
    """Returns how many. The last call, with nothing to do, closes the connection of the dispatcher."""
    count = 0
    while delivered := dispatcher.drain(now=later):
        count += delivered
    return count


def found_by_audit() -> list[str]:
    return [*findings.find(Verification()), *differences()]


def export(shop: Shop, file: Path) -> str:
    key, _digest = exporting.export(shop.merchant.pk, file, now=clock.now())
    return key


def import_file(file: Path, key: str) -> str:
    """By the command, which reads the key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(f"{key}\n"))
        return str(call_command("import_merchant", file, stdout=io.StringIO()))


def all_events(shop: Shop) -> Iterator[dict[str, Any]]:
    """As a program follows the feed of the API."""
    last = 0
    while page := shop.get(f"/v1/events?after_sequence={last}&limit=100").json()["events"]:
        yield from page
        last = page[-1]["sequence"]


def lists(shop: Shop) -> dict[str, Any]:
    """All that the merchant reads."""
    names = ("payments", "refunds", "withdrawals", "transactions", "balance", "payment-links", "webhooks")
    paths = [*names, "settlements", "balance/transactions"]
    found = {path: shop.get(f"/v1/{path}?limit=100").json() for path in paths}
    assert not [path for path, answer in found.items() if "error" in answer]
    return found | {"events": list(all_events(shop))}


def test_each_table_moves_or_stays_for_a_reason() -> None:
    stays = [label for labels in tables.STAYS.values() for label in labels]
    known = [model._meta.label_lower for model in apps.get_models(include_auto_created=True)]
    assert sorted([*tables.MOVES, *stays]) == sorted(known)


def test_merchant_moves_under_load(
    shop: Shop,
    bank: SandboxBankClient,
    endpoint: Receiver,
    other_instance: Instance,
    file: Path,
) -> None:
    register(shop, endpoint)
    first = shop.post("/v1/qr-codes", {"amount": 100_000, "currency": "THB"}, key="order-1")
    bank.notify(first.json())
    deliver()
    left_open = shop.qr_code()
    made: list[dict[str, Any]] = []
    is_busy = Event()

    def load() -> str:
        while True:
            answer = shop.post("/v1/qr-codes", {"amount": 100_000, "currency": "THB"})
            if answer.status_code != 200:
                check_error(answer.json(), "merchant_moved")
                return "refused"
            made.append(answer.json())
            assert bank.notify(made[-1]).status_code == 200
            if len(made) == 20:
                is_busy.set()

    def leave() -> str:
        is_busy.wait(60)
        return export(shop, file)

    refused, key = run_concurrently(load, leave)
    assert refused == "refused"
    assert deliver() == 0
    matching.apply_unapplied(now=later())
    assert (shop.get("/v1/payments").status_code, found_by_audit()) == (403, [])
    credited_here = set(Payment.objects.filter(status="succeeded").values_list("pk", flat=True))
    reported = BankNotification.objects.filter(result="moved").count()
    events_here = feed.page(shop.merchant.pk, after_sequence=0, limit=1000).events
    assert bank.notify(left_open).status_code == 200
    assert ReconciliationException.objects.filter(reason="moved").count() == reported + 1
    assert set(Payment.objects.filter(status="succeeded").values_list("pk", flat=True)) == credited_here
    with other_instance():
        scan.create_inquiries(now=clock.now())  # of all payments until now
        import_file(file, key)
        assert found_by_audit() == []
        scan.create_inquiries(now=later())
        assert Inquiry.objects.filter(payment=left_open["payment_id"]).exists()
        again = shop.post("/v1/qr-codes", {"amount": 100_000, "currency": "THB"}, key="order-1")
        assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
        assert len(made) + 2 == shop.get("/v1/payments").json()["total"]
        matching.apply_unapplied(now=later())
        # What arrived at the old instance too late is reported here, as an inquiry does.
        for code in [left_open, *made, left_open]:
            if shop.payment(code["payment_id"])["status"] != "succeeded":
                assert bank.notify(code).status_code == 200
        assert {shop.payment(code["payment_id"])["status"] for code in [left_open, *made]} == {"succeeded"}
        assert shop.get("/v1/balance").json()["available"] == 150_000 + 100_000 * (len(made) + 1)
        events = list(all_events(shop))
        assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
        assert len({each["event_id"] for each in events}) == len(events) >= len(events_here)
        deliver()
        sent = [request.json["event_id"] for request in endpoint.requests if "ping" not in str(request.json)]
        succeeded = [each["event_id"] for each in events if each["event"] == "payment.succeeded"]
        assert sorted(sent) == sorted(succeeded)
        assert shop.qr_code() and found_by_audit() == []
    assert found_by_audit() == []


@pytest.mark.slow
def test_each_kind_of_row_moves(
    refund_shop: RefundShop,
    served_by: Serving,
    acquirer: ReportingAcquirer,
    settings: Settings,
    other_instance: Instance,
    file: Path,
) -> None:
    """The scenarios of the audit. What has not ended is moved here too, so that all states are."""
    shop = refund_shop.shop
    for scenario in SCENARIOS:
        scenario(refund_shop, served_by)
    scenarios.settle_cards(refund_shop, served_by, acquirer)
    scenarios.fail_transfer(refund_shop, served_by, acquirer)
    scenarios.void_card(refund_shop, served_by, acquirer)
    scenarios.request_approvals(refund_shop, served_by, settings)
    add_payout_account(shop)
    before = lists(shop)
    with pytest.raises(CommandError, match=r"Not finished: .*rtn_"):
        call_command("export_merchant", shop.merchant.pk, file)
    assert lists(shop) == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_unfinished", lambda merchant: [])
        key = export(shop, file)
    with other_instance():
        import_file(file, key)
        assert found_by_audit() == []
        assert lists(shop) == before


def cut(content: bytes) -> bytes:
    return content[: content.rindex(b"sealed:") - 4]


OTHER_KEY_OR_DAMAGED = "The key is not that of this file, or the file is damaged."
NO_FILE = "This is no file of export_merchant, or one of another version."
Damage = Callable[[bytes], bytes]
DAMAGES: list[tuple[str, Damage]] = [
    ("The file is damaged.", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    ("The file is damaged.", lambda content: content[:-1]),
    ("The end of the file is missing.", cut),
    (OTHER_KEY_OR_DAMAGED, lambda content: content[:30] + content[31:]),
    (NO_FILE, lambda content: b"x" + content),
    (NO_FILE, lambda content: b""),
]


def test_file_that_does_not_fit_changes_nothing(
    shop: Shop, bank: SandboxBankClient, other_instance: Instance, file: Path, settings: Settings
) -> None:
    bank.notify(shop.qr_code())
    key, content = export(shop, file), file.read_bytes()

    def refusal(text: str = key) -> str:
        before = count_rows()
        with pytest.raises(CommandError) as refused:
            import_file(file, text)
        assert count_rows() == before
        first, last = str(refused.value).rsplit("\n", 1)
        assert last == "Nothing is changed."
        return first

    assert refusal() == f"{shop.merchant.pk} is in this database already."
    with other_instance():
        assert refusal("secret") == "The key is not one that export_merchant printed."
        assert refusal(vault.new_key()) == OTHER_KEY_OR_DAMAGED
        for sentence, damage in DAMAGES:
            file.write_bytes(damage(content))
            assert refusal() == sentence
        file.write_bytes(content)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables, "schema", dict)
            assert "must have the same version" in refusal()
        settings.CLOSE_SIGNING_KEY = KEY
        closing.close((clock.now() - timedelta(days=3)).date(), now=clock.now())
        assert "closed days get no entries" in refusal()
    with other_instance(), connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica; DELETE FROM operations_dailyclose")
    with other_instance():
        assert shop.merchant.pk in import_file(file, key)
        assert refusal() == f"{shop.merchant.pk} is in this database already."


def forged(content: bytes, key: str, path: Path, change: Callable[[Any], Any]) -> None:
    """The file as another operator could write it, who has its key."""
    with path.open("wb") as opened:
        writer = Writer(opened, key)
        for chunk in read(io.BytesIO(content), key):
            change(chunk)
            writer.write(chunk)


def test_file_cannot_bring_rows_of_others(
    shop: Shop, other_shop: Shop, other_instance: Instance, file: Path, bank: SandboxBankClient
) -> None:
    bank.notify(shop.qr_code())
    key = export(shop, file)
    content, other_key = file.read_bytes(), export(other_shop, file.with_name("other"))
    columns = tables.schema()

    def give_away(chunk: Any) -> None:
        if chunk.get("table") == "merchants.apikey":
            chunk["rows"][0][columns["merchants.apikey"].index("merchant_id")] = other_shop.merchant.pk

    def make_admin(chunk: Any) -> None:
        if chunk.get("table") == "merchants.apikey":
            chunk["table"] = "auth.user"

    def lose(chunk: Any) -> None:
        if chunk.get("table") == "reconciliation.banknotification":
            column = columns["reconciliation.banknotification"].index("bank_transaction_id")
            chunk["rows"][0][column] = "btx_nobody"

    def hide(chunk: Any) -> None:
        if chunk.get("table") == "audit_trail.auditrecord":
            for row in chunk["rows"]:
                for name in ("object_id", "merchant_id"):
                    row[columns["audit_trail.auditrecord"].index(name)] = ""

    def enrich(chunk: Any) -> None:
        if "manifest" in chunk:
            chunk["manifest"] = chunk["manifest"].replace('"sequence":', '"sequence":1')

    with other_instance():
        import_file(file.with_name("other"), other_key)
        for change in (give_away, make_admin, hide):
            forged(content, key, file, change)
            with pytest.raises(CommandError, match="rows of other merchants or tables"):
                import_file(file, key)
        forged(content, key, file, lose)
        with pytest.raises(CommandError, match="there is no bank transaction btx_nobody"):
            import_file(file, key)
        forged(content, key, file, enrich)
        with pytest.raises(CommandError, match="not those that the file names"):
            import_file(file, key)
        forged(content, key, file, lambda chunk: None)
        assert shop.merchant.pk in import_file(file, key)


def test_export_that_fails_leaves_the_merchant_as_it_was(
    shop: Shop, file: Path, transactional_db: None
) -> None:
    file.write_text("of somebody else")
    with pytest.raises(CommandError, match="File exists"):
        call_command("export_merchant", shop.merchant.pk, file)
    assert file.read_text() == "of somebody else"
    assert shop.get("/v1/payments").status_code == 200
    with pytest.raises(CommandError, match="No merchant mch_none"):
        call_command("export_merchant", "mch_none", file)
    with pytest.raises(CommandError, match="has not moved"):
        call_command("export_merchant", shop.merchant.pk, "--cancel")


def test_books_that_a_restore_may_have_cut_stay(shop: Shop, file: Path, transactional_db: None) -> None:
    """The other instance has no safe mode: it would pay out what lost orders have sent already."""
    safe_mode.pause(reason="A restore", now=clock.now())
    with pytest.raises(CommandError, match="Safe mode is on"):
        call_command("export_merchant", shop.merchant.pk, file)
    assert (shop.get("/v1/payments").status_code, file.exists()) == (200, False)


def test_transaction_that_began_before_is_awaited(
    transactional_db: None, shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "PATIENCE_SECONDS", 0.2)
    released = Event()

    def hold() -> None:
        with transaction.atomic():
            assert Merchant.objects.exists()
            released.wait(60)

    def leave() -> None:
        try:
            with pytest.raises(CommandError, match="does not end"):
                call_command("export_merchant", shop.merchant.pk, file)
        finally:
            released.set()

    run_concurrently(hold, leave)
    assert (shop.get("/v1/payments").status_code, file.exists()) == (200, False)


def test_merchant_whose_move_is_canceled_works_as_before(
    shop: Shop, bank: SandboxBankClient, endpoint: Receiver, file: Path, transactional_db: None
) -> None:
    register(shop, endpoint)
    code = shop.qr_code()
    export(shop, file)
    assert Endpoint.objects.get().status == "disabled"
    bank.notify(code)
    call_command("export_merchant", shop.merchant.pk, "--cancel", stdout=io.StringIO())
    assert Endpoint.objects.get().status == "active"
    bank.notify(code)
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    assert found_by_audit() == []


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE merchants_merchant SET suspended_at = NULL",
        "UPDATE webhooks_endpoint SET status = 'active'",
        """INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
           SELECT 'btr_1', id, 'payment', 1, 'pay_1', now() FROM merchants_merchant""",
        """INSERT INTO reconciliation_banktransaction (id, bank, bank_reference, source, kind, biller_id,
               reference1, amount, paid_at, match_result, received_at, resolution_state)
           SELECT 'btx_1', bank, 'x', 'callback', 'credit', biller_id, 'x', 1, now(), '', now(), ''
           FROM merchants_merchant""",
        """INSERT INTO transfers_transfer (id, purpose, merchant_id, route, amount, charge_id, state, due_at,
               inquiries, created_at)
           SELECT 'wd_1', 'refund', id, 'bank:sandbox', 1, 'x', 'queued', now(), 0, now()
           FROM merchants_merchant""",
    ],
)
def test_database_keeps_the_books_of_a_merchant_that_has_moved(
    sql: str, shop: Shop, endpoint: Receiver, transactional_db: None
) -> None:
    register(shop, endpoint)
    exporting.leave(shop.merchant.pk, now=clock.now())
    with (
        pytest.raises(DatabaseError, match=r"has moved|merchant_moved_is_suspended"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_bank_is_not_asked_about_a_merchant_that_has_moved(shop: Shop, transactional_db: None) -> None:
    payment_id, now = shop.qr_code()["payment_id"], clock.now()
    Inquiry.objects.create(payment_id=payment_id, bank="sandbox", due_at=now, created_at=now)
    rate_limit.ensure_rows(["sandbox"])
    exporting.leave(shop.merchant.pk, now=now)
    batch = batches.start(now)
    assert batch is not None and batch.inquiries == []
    due_at = Inquiry.objects.get().due_at
    assert due_at is not None and due_at > now


def reasons() -> list[str]:
    return sorted(ReconciliationException.objects.values_list("reason", flat=True))


def test_order_that_comes_back_after_the_move_waits_for_staff(
    refund_shop: RefundShop, served_by: Serving, transactional_db: None
) -> None:
    shop = refund_shop.shop
    scenarios.withdraw(refund_shop, served_by)
    (withdrawal,) = shop.get("/v1/withdrawals").json()["withdrawals"]
    exporting.leave(shop.merchant.pk, now=clock.now())
    report = ReportedTransfer(withdrawal["withdrawal_id"], "returned")
    order_completion.accept_notification(bank="sandbox", body=b"{}", notification=report, now=clock.now())
    assert (reasons(), found_by_audit()) == (["moved"], [])


def test_unsigned_notification_after_the_move_waits_for_staff(
    shop: Shop, bank: SandboxBankClient, transactional_db: None
) -> None:
    reported = parse(bank.notification(shop.qr_code()))
    exporting.leave(shop.merchant.pk, now=clock.now())
    confirmation_inquiries.receive_unsigned(
        bank="sandbox", body=b"{}", notification=reported, now=clock.now()
    )
    assert (reasons(), ConfirmationInquiry.objects.count()) == (["moved"], 0)


def test_statement_line_after_the_move_waits_for_staff(
    shop: Shop, other_shop: Shop, transactional_db: None
) -> None:
    lines = [credit_line(each.qr_code(), clock.now()) for each in (shop, other_shop)]
    exporting.leave(shop.merchant.pk, now=clock.now())
    import_statement(bot_file(*lines))
    assert (reasons(), list(BankTransaction.objects.values_list("merchant", flat=True))) == (
        ["unreadable"],
        [other_shop.merchant.pk],
    )
    assert StatementLine.objects.get(result="unreadable").error == "it is of a merchant that has moved"


@pytest.mark.parametrize("known", [True, False])
def test_bank_that_confirms_what_a_statement_reported_waits_for_staff(
    shop: Shop, bank: SandboxBankClient, transactional_db: None, known: bool
) -> None:
    code, paid_at = shop.qr_code(), clock.now()
    reference = {} if known else {"reference1": "NOBODYKNOWSTHIS00000"}
    import_statement(
        bot_file(credit_line(code, paid_at, **({} if known else {"ref1": "NOBODYKNOWSTHIS00000"})))
    )
    exporting.leave(shop.merchant.pk, now=clock.now())
    assert bank.post(bank.notification(code, paid_at=paid_at, **reference)).status_code == 200
    assert "moved" in reasons()
    assert not BankTransaction.objects.get().is_confirmed


def test_line_with_a_fee_after_the_move_stops_no_other_line(
    shop: Shop, other_shop: Shop, transactional_db: None
) -> None:
    lines = [with_fee(each.qr_code(), "1.00", "0.07") for each in (shop, other_shop)]
    exporting.leave(shop.merchant.pk, now=clock.now())
    import_statement(csv_file(*lines, header=WITH_FEE))
    assert list(BankTransaction.objects.values_list("merchant", flat=True)) == [other_shop.merchant.pk]


def test_suspension_of_a_merchant_that_has_moved_is_not_lifted(shop: Shop, transactional_db: None) -> None:
    exporting.leave(shop.merchant.pk, now=clock.now())
    with pytest.raises(MerchantMoved):
        services.lift_suspension(shop.merchant.pk)


def test_staff_read_that_the_merchant_has_moved(
    shop: Shop, bank: SandboxBankClient, transactional_db: None
) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=149_999)
    exporting.leave(shop.merchant.pk, now=clock.now())
    malee, held = staff_client("malee", *RESOLVES), BankTransaction.objects.get()
    assert "The merchant has moved to another instance." in confirm(malee, held.pk, "accept")
    assert (reasons(), found_by_audit()) == (["amount_mismatch"], [])


def test_payer_of_a_merchant_that_has_moved_names_no_account_here(
    shop: Shop, bank: SandboxBankClient, transactional_db: None
) -> None:
    claim = claim_of(shop, bank)
    exporting.leave(shop.merchant.pk, now=clock.now())
    assert (claim.read().status_code, claim.send(slip_reference=claim.slip_reference).status_code) == (
        404,
        404,
    )


@pytest.mark.parametrize("decision", ["record_manual_return", "write_off", "merge"])
def test_nobody_decides_here_about_money_of_a_merchant_that_has_moved(
    decision: str, shop: Shop, bank: SandboxBankClient, transactional_db: None
) -> None:
    """The other instance has the same exception: its staff would send the money back a second time."""
    seller = Seller(shop, bank)
    waiting: dict[str, Callable[[], BankTransaction]] = {
        "record_manual_return": seller.unmatched,
        "write_off": lambda: seller.reverse(seller.unmatched(), 1),
        "merge": lambda: report_twice(seller),
    }
    found = waiting[decision]()
    exporting.leave(shop.merchant.pk, now=clock.now())
    given = {"bank_reference": "FT1"} if decision == "record_manual_return" else {}
    before = (suspense(), state_of(found))
    with pytest.raises(DatabaseError, match="has moved"):
        decide(decision, found, **given)
    assert (suspense(), state_of(found), found_by_audit()) == (*before, [])
    assert not Return.objects.exists()


def test_second_person_does_not_complete_a_return_of_a_merchant_that_has_moved(
    shop: Shop, bank: SandboxBankClient, settings: Settings, transactional_db: None
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 1
    held = Seller(shop, bank).unmatched()
    made = decide("record_manual_return", held, bank_reference="FT1")
    exporting.leave(shop.merchant.pk, now=clock.now())
    with pytest.raises(DatabaseError, match="has moved"):
        decide_approval(made.pk, "approve", actor="staff:somsak")
    assert state_of(held) == ("unmatched", "sending_back")
