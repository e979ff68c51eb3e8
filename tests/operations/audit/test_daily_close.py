"""Each day is closed by a signed document that contains the hash of the one before."""

import base64
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pypdfium2
import pytest
import time_machine
import zxingcpp
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction
from django.test import Client
from pypdf import PdfReader
from pytest_django import Settings

from audit_trail import chain
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from config.deployment import postgresql
from core import clock
from core.drawing.pdf import Document
from merchants.services import issue_key
from operations.audit.daily_close import closing, document, signing, totals
from operations.audit.daily_close.closing import NotClosable
from operations.audit.daily_close.signing import NoSigningKey
from operations.models import DailyClose
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import staff_client
from tests.withdrawals.builders import withdrawn

KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
LIST = "/admin/operations/dailyclose/"
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def key(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = KEY


@pytest.fixture
def day(noon: datetime) -> date:
    return noon.astimezone(clock.BANGKOK).date()


@pytest.fixture
def busy_shop(shop: Shop, bank: SandboxBankClient, noon: datetime) -> Shop:
    """A shop that got a key, was paid and withdrew on one day, and was paid on the next."""
    with time_machine.travel(noon, tick=False) as now:
        issue_key(merchant=shop.merchant, now=noon)
        bank.notify(shop.qr_code(amount=150_000))
        bank.notify(shop.qr_code(amount=50_000))
        withdrawn(shop, amount=30_000)
        now.shift(timedelta(days=1))
        bank.notify(shop.qr_code(amount=10_000))
    chain.chain_waiting()
    return shop


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("daily_close", *arguments, stdout=output)
    return output.getvalue()


def body_of(close: DailyClose) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(close.body)
    return found


def damage(sql: str) -> None:
    """Change rows without triggers, as the owner of the database can."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = replica; {sql}")


def test_second_run_of_a_day_says_that_nothing_is_left(busy_shop: Shop) -> None:
    assert "close 1, hash" in run()
    assert run() == "No day to close: each that ended over ten minutes ago is closed.\n"


def test_close_has_totals_by_account_merchant_and_bank(busy_shop: Shop, day: date, noon: datetime) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    body = body_of(made)
    merchant = busy_shop.merchant.id
    accounts = {each["account"]: each for each in body["accounts"]}
    available = accounts[f"available:{merchant}"]
    assert (available["opening"], available["incoming"], available["closing"]) == (0, 200_000, 170_000)
    assert accounts[f"reserved:{merchant}"]["closing"] == 30_000
    [bank] = body["banks"]
    assert (bank["account"], bank["outgoing"]) == ("bank:sandbox", -200_000)
    [sums] = body["merchants"]
    assert (sums["merchant"], sums["closing"]) == (merchant, 200_000)
    assert sum(each["closing"] for each in body["accounts"]) == 0
    assert body["audit_trail"]["number"] > 0
    assert signing.is_valid(made.body, made.signature, signing.public_key())
    assert not signing.is_valid(made.body + " ", made.signature, signing.public_key())


def test_closes_are_chained_and_open_with_the_balances_before(
    busy_shop: Shop, day: date, noon: datetime
) -> None:
    first = closing.close(day, now=noon + timedelta(days=2))
    second = closing.close(day + timedelta(days=1), now=noon + timedelta(days=2))
    body = body_of(second)
    assert body["previous"] == {"number": 1, "hash": first.hash}
    account = f"available:{busy_shop.merchant.id}"
    [available] = [each for each in body["accounts"] if each["account"] == account]
    assert (available["opening"], available["incoming"], available["closing"]) == (170_000, 10_000, 180_000)
    assert list(closing.findings()) == []


def test_first_close_opens_with_the_balances_of_the_history(
    busy_shop: Shop, day: date, noon: datetime
) -> None:
    made = closing.close(day + timedelta(days=1), now=noon + timedelta(days=2))
    account = f"available:{busy_shop.merchant.id}"
    assert closing.closing_balances(made)[account] == 180_000
    assert list(closing.findings()) == []


def test_day_that_has_not_ended_or_does_not_follow_cannot_be_closed(
    shop: Shop, day: date, noon: datetime
) -> None:
    midnight = totals.bounds(day)[1]
    for now in (noon, midnight, midnight + closing.CLOSABLE_AFTER - timedelta(seconds=1)):
        with pytest.raises(NotClosable):
            closing.close(day, now=now)
    closing.close(day, now=midnight + closing.CLOSABLE_AFTER)
    for other in (day, day - timedelta(days=1), day + timedelta(days=2)):
        with pytest.raises(NotClosable):
            closing.close(other, now=noon + timedelta(days=9))


def test_command_closes_all_days_that_have_ended(shop: Shop, day: date, noon: datetime) -> None:
    with time_machine.travel(noon + timedelta(days=3), tick=False) as now:
        lines = run("--first", day.isoformat()).splitlines()
        assert [line[:10] for line in lines] == [(day + timedelta(days=n)).isoformat() for n in range(3)]
        assert run() == "No day to close: each that ended over ten minutes ago is closed.\n"
        now.shift(timedelta(days=1))
        assert run().startswith((day + timedelta(days=3)).isoformat())
    assert list(DailyClose.objects.values_list("number", flat=True).order_by("number")) == [1, 2, 3, 4]


def test_command_without_a_key_says_what_to_set(shop: Shop, settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = ""
    with pytest.raises(CommandError, match="CLOSE_SIGNING_KEY is not set"):
        run()
    with pytest.raises(NoSigningKey):
        signing.public_key()


@pytest.mark.parametrize("sql", ["UPDATE {} SET body = ''", "DELETE FROM {}", "TRUNCATE {}"])
def test_close_cannot_be_changed_or_deleted(shop: Shop, day: date, noon: datetime, sql: str) -> None:
    closing.close(day, now=noon + timedelta(days=1))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.format("operations_dailyclose"))


def test_close_that_was_rewritten_and_signed_with_another_key_is_found(
    busy_shop: Shop, day: date, noon: datetime, settings: Settings
) -> None:
    own = closing.close(day, now=noon + timedelta(days=1))
    body = own.body.replace("closed_at", "closed_when")
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"x" * 32).decode()
    other = signing.public_key()
    damage(
        f"UPDATE operations_dailyclose SET body = '{body}', hash = '{closing.hash_of(body)}',"
        f" signature = '{signing.sign(body)}', public_key = '{other}'"
    )
    for key in (KEY, ""):
        settings.CLOSE_SIGNING_KEY = key
        [found, of_evidence] = [text for _, text in closing.findings()]
        assert of_evidence == f"the evidence of {busy_shop.merchant.id} was changed"
        assert found == f"is signed with the key {signing.fingerprint(other)}, which is not configured"
    with pytest.raises(CommandError, match="Differences: 2"):
        call_command("audit", stdout=io.StringIO(), stderr=io.StringIO())


def test_closes_of_an_earlier_key_stay_valid_and_the_audit_prints_all_keys(
    busy_shop: Shop, day: date, noon: datetime, settings: Settings
) -> None:
    first = closing.close(day, now=noon + timedelta(days=2))
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"n" * 32).decode()
    settings.CLOSE_PUBLIC_KEYS = [first.public_key]
    with time_machine.travel(noon + timedelta(days=2), tick=False):
        printed = run()
    assert printed.strip().endswith(f"key {signing.fingerprint(signing.public_key())}")
    assert list(closing.findings()) == []
    output = io.StringIO()
    call_command("audit", stdout=output, stderr=io.StringIO())
    keys = [signing.fingerprint(each) for each in (first.public_key, signing.public_key())]
    assert f"They are signed with {keys[0]} (1), {keys[1]} (1)" in output.getvalue()


TAMPERING: dict[str, tuple[str, str]] = {
    "body": ("UPDATE operations_dailyclose SET body = replace(body, '200000', '200001')", "was changed"),
    "hash": ("UPDATE operations_dailyclose SET hash = repeat('0', 64) WHERE number = 2", "was changed"),
    "signature": ("UPDATE operations_dailyclose SET signature = 'x' WHERE number = 2", "was changed"),
    "missing": ("DELETE FROM operations_dailyclose WHERE number = 1", "does not follow"),
    "amounts": (
        """UPDATE ledger_entry SET amount = amount + sign(amount)
           WHERE journal_id = (SELECT min(id) FROM ledger_journal)""",
        "the ledger has other totals",
    ),
    "journals": (
        """UPDATE ledger_entry SET journal_id = -journal_id
           WHERE journal_id = (SELECT min(id) FROM ledger_journal)""",
        "the ledger has other entries",
    ),
    "late": (
        """INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
           SELECT -1, account_id, amount, created_at FROM ledger_entry ORDER BY id LIMIT 1""",
        "the ledger has other totals",
    ),
    "audit trail": (
        "UPDATE audit_trail_chainlink SET hash = repeat('0', 64)",
        "the audit trail does not contain its link",
    ),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_audit_finds_what_was_changed_after_a_close(
    busy_shop: Shop, day: date, noon: datetime, kind: str
) -> None:
    for number in range(2):
        closing.close(day + timedelta(days=number), now=noon + timedelta(days=2))
    assert list(closing.findings()) == []
    sql, finding = TAMPERING[kind]
    damage(sql)
    found = [text for _, text in closing.findings()]
    assert any(finding in text for text in found), found
    with pytest.raises(CommandError, match="Differences"):
        call_command("audit", stdout=io.StringIO(), stderr=io.StringIO())


def test_downloaded_file_is_verified_with_the_public_key(
    busy_shop: Shop, day: date, noon: datetime, tmp_path: Path
) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    auditor = staff_client("somsri", "view_dailyclose")
    assert made.hash in auditor.get(LIST).content.decode()
    answer = auditor.get(f"{LIST}{made.pk}/download/")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="daily-close-{day}.json"'
    file, key = tmp_path / "close.json", run("--public-key").strip()
    file.write_bytes(answer.content)
    assert made.hash in run("--check", str(file), "--key", key)
    file.write_bytes(answer.content.replace(b"170000", b"170001"))
    with pytest.raises(CommandError, match="was changed"):
        run("--check", str(file), "--key", key)
    for content in (b"{}", b"[]", b"?"):
        file.write_bytes(content)
        with pytest.raises(CommandError, match="is not a file"):
            run("--check", str(file), "--key", key)
    with pytest.raises(CommandError, match="--key"):
        run("--check", str(file))


def printed(close: DailyClose, **headers: str) -> str:
    auditor = staff_client(f"auditor {uuid4()}", "view_dailyclose")
    answer = auditor.get(f"{LIST}{close.pk}/print/", **headers)  # type: ignore[arg-type]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="daily-close-{close.day}.pdf"'
    assert answer.content == document.write(close) or headers
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(answer.content)).pages)


def test_print_has_the_totals_of_the_signed_text(busy_shop: Shop, day: date, noon: datetime) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    text, body = printed(made), body_of(made)
    for name, table in (("merchant", "merchants"), ("account", "banks"), ("account", "accounts")):
        for each in body[table]:
            amounts = [f"{each[key] / 100:,.2f}" for key in ("opening", "incoming", "outgoing", "closing")]
            assert " ".join([each[name], *amounts]) in text
    assert f"{day} 00:00:00 – {day} 23:59:59" in text
    assert "ยอดยกมา" in printed(made, HTTP_ACCEPT_LANGUAGE="th")


def test_print_never_cuts_an_account(noon: datetime) -> None:
    account = "unconfirmed:mch_6TLvcz6eLgHUQVY7BCm4G3ROHJU"
    paper = Document("Daily close", at=noon, language="en")
    paper.add_rows(document._columns("account"), [[account, "0.00", "0.00", "0.00", "0.00"]], has_sum=False)
    assert account in PdfReader(io.BytesIO(paper.output())).pages[0].extract_text()


def test_print_has_what_proves_the_signed_text(
    busy_shop: Shop, day: date, noon: datetime, tmp_path: Path
) -> None:
    closing.close(day, now=noon + timedelta(days=2))
    made = closing.close(day + timedelta(days=1), now=noon + timedelta(days=2))
    text, file = "".join(printed(made).split()), tmp_path / "close.json"
    fingerprint = signing.fingerprint(signing.public_key())
    body = body_of(made)
    for proof in (made.hash, made.signature, fingerprint, body["ledger"]["hash"], made.previous_hash):
        assert proof in text
    assert body["audit_trail"]["hash"] in text
    file.write_bytes(staff_client("malee", "view_dailyclose").get(f"{LIST}{made.pk}/download/").content)
    checked = run("--check", str(file), "--key", signing.public_key())
    assert made.hash in checked
    assert fingerprint in checked


def test_qr_code_of_a_print_has_hash_signature_and_fingerprint(
    busy_shop: Shop, day: date, noon: datetime
) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    pages = pypdfium2.PdfDocument(document.write(made))
    [code] = [
        code for page in pages for code in zxingcpp.read_barcodes(page.render(scale=3).to_pil().convert("L"))
    ]
    fingerprint = signing.fingerprint(made.public_key)
    assert code.text == f"daily-close {day} 1 {made.hash} {made.signature} {fingerprint}"


def test_long_tables_of_a_print_are_left_to_the_file(
    busy_shop: Shop, day: date, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    monkeypatch.setattr(document, "MAX_ROWS", document.SUMS + 2)
    text = printed(made)
    assert "bank:sandbox" in text
    assert f"available:{busy_shop.merchant.id}" not in text
    assert f"{len(body_of(made)['accounts'])} rows are too many to print." in text


@pytest.mark.parametrize(("page", "file"), [("download", "json"), ("print", "pdf")])
def test_download_leaves_an_audit_record(shop: Shop, day: date, noon: datetime, page: str, file: str) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    auditor = staff_client("somsri", "view_dailyclose")
    auditor.get(f"{LIST}{made.pk}/{page}/")
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert (record.actor, record.object_id) == ("staff:somsri", str(made.pk))
    assert record.object_type == "operations.dailyclose"
    assert record.after == {"day": day.isoformat(), "file": file}


@pytest.mark.django_db(transaction=True)
def test_person_prints_one_close_at_a_time(shop: Shop, day: date, noon: datetime) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    auditor = staff_client("somsri", "view_dailyclose")
    other = connections["default"].copy("other")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended('print:somsri', 0))")
            assert auditor.get(f"{LIST}{made.pk}/print/").status_code == 429
            assert not AuditRecord.objects.filter(act=Act.EXPORTED).exists()
            # Not by the end of the session alone, which the server sees a moment later.
            cursor.execute("SELECT pg_advisory_unlock_all()")
    finally:
        other.close()
    assert auditor.get(f"{LIST}{made.pk}/print/").status_code == 200


def test_refused_download_leaves_no_audit_record(shop: Shop, day: date, noon: datetime) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    for page in ("download", "print"):
        assert staff_client(f"no {page}").get(f"{LIST}{made.pk}/{page}/").status_code == 403
    assert not AuditRecord.objects.filter(act=Act.EXPORTED).exists()


def test_download_needs_the_permission(shop: Shop, day: date, noon: datetime) -> None:
    made = closing.close(day, now=noon + timedelta(days=1))
    url = f"{LIST}{made.pk}/download/"
    assert staff_client("nobody").get(url).status_code == 403
    assert Client().get(url).status_code == 302
    assert staff_client("somsri", "view_dailyclose").get(f"{LIST}9/download/").status_code == 404


def test_page_and_check_say_what_is_missing_if_days_stay_open(
    shop: Shop, day: date, noon: datetime, settings: Settings
) -> None:
    auditor, now = staff_client("somsri", "view_dailyclose"), noon + timedelta(days=1)
    with time_machine.travel(now, tick=False):
        assert "CLOSE_SIGNING_KEY is not set" not in auditor.get(LIST).content.decode()
        settings.CLOSE_SIGNING_KEY = ""
        assert "CLOSE_SIGNING_KEY is not set" in auditor.get(LIST).content.decode()
        assert "CLOSE_SIGNING_KEY is not set" in postgresql.closes(now).advice
        settings.CLOSE_SIGNING_KEY = KEY
        closing.close(day, now=now)
        settings.CLOSE_SIGNING_KEY = ""  # of this process only: another one closes the days
        assert "CLOSE_SIGNING_KEY is not set" not in auditor.get(LIST).content.decode()


def test_simultaneous_closes_make_one(
    shop: Shop, day: date, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the closes before one of them writes."""
    sign: Callable[[str], str] = signing.sign

    def sign_after_another(body: str) -> str:
        monkeypatch.setattr(signing, "sign", sign)
        with ThreadPoolExecutor(1) as other:
            other.submit(close_and_disconnect).result()
        return sign(body)

    def close_and_disconnect() -> None:
        closing.close(day, now=noon + timedelta(days=1))
        connection.close()

    monkeypatch.setattr(signing, "sign", sign_after_another)
    with pytest.raises(NotClosable, match="somebody else"):
        closing.close(day, now=noon + timedelta(days=1))
    assert DailyClose.objects.count() == 1
