"""The proof page of a merchant: signed figures that a second program counts again."""

import json
import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings
from thaiqr.cli import evidence
from thaiqr.cli.evidence import NotTrue

from audit_trail import chain
from audit_trail.models import AuditRecord, ChainLink
from console.people.roles import ShopRole
from core import clock
from core.http.rate_limits import RateLimit
from merchants.models import Merchant
from operations.audit.daily_close import closing, proofs, signing
from operations.audit.daily_close.proofs import Facts
from operations.models import DailyClose, JobRun, NightlyJob, ProofDay
from operations.proof import page, recount
from reconciliation.exceptions import resolutions
from reconciliation.models import BankTransaction
from tests.clients.command_line import CommandLine
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.operations.evidence.builders import KEY, close_day
from tests.operations.proof.builders import BANK, ProofShop
from tests.reconciliation.builders import staff_client
from tests.reconciliation.statements.statement_files import BILLER
from tests.shop.people import person_of
from tests.staff_acts import act_form, run_act
from webhooks.models import Delivery

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SECOND = timedelta(seconds=1)
LATER = "2026-11-22T00:00Z"


@pytest.fixture(autouse=True)
def key(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = KEY


@pytest.fixture
def proof(shop: Shop, bank: SandboxBankClient) -> ProofShop:
    row = {"mode": "live", "bank": BANK, "biller_id": BILLER}
    Merchant.objects.filter(pk=shop.merchant.pk).update(**row)
    return ProofShop(shop, bank)


@pytest.fixture
def day(proof: ProofShop, noon: datetime) -> dict[str, Any]:
    """The signed figures of 24 payments: 21 by callback, two by inquiry, one by a statement."""
    proof.webhook()
    for number in range(21):
        proof.pay(noon + number * SECOND)
    for after in (8, 40):
        proof.pay(noon, "inquiry", after=after * SECOND, posted=[(after + 1) * SECOND])
    proof.pay(noon, "statement", after=timedelta(hours=3), posted=[])
    proof.close(noon)
    return dict(json.loads(proof.proof().body))


def facts(payments: int, **fields: Any) -> Facts:
    given = {"posted": payments, "not_posted": 0, "p95": SECOND, "lost_by_inquiry": 0, "lost_by_statement": 0}
    none = dict.fromkeys(Facts._fields[6:])
    return Facts(payments, **{**given, **none, **fields})


def shown_of(found: Facts) -> dict[str, Any]:
    close = DailyClose(number=1, day=date(2026, 11, 21))
    return proofs.document("mch_1", close, {"closed_at": ""}, found)


def test_figures_say_how_soon_and_how_completely_payments_were_reported(day: dict[str, Any]) -> None:
    assert (day["kind"], day["day"]) == ("proof", "2026-11-21")
    assert day["payments"] == {"from": 20, "to": 49}
    assert day["webhook"] == {"p95_ms": 9_000, "not_posted": 1}
    assert day["callbacks"] == {
        "lost": 3,
        "found_by_inquiry": 2,
        "found_by_statement": 1,
        "half_found_within_s": 60,
        "all_found_within_s": 14_400,
    }
    close = DailyClose.objects.get()
    assert (day["close"]["number"], day["close"]["hash"]) == (1, close.hash)
    assert (day["audit"], day["restore_drill"]) == (None, None)


@pytest.mark.parametrize("seed", range(3))
def test_second_program_counts_the_same(proof: ProofShop, noon: datetime, seed: int) -> None:
    for url in ("https://shop.example/hook", "https://books.example/hook"):
        proof.webhook(url=url)
    proof.day(noon, 60, random.Random(seed))
    proof.close(noon)
    figures = json.loads(proof.proof().body)
    assert figures["callbacks"]["lost"] > 0
    assert figures["webhook"] is not None
    assert list(recount.differences(proof.proof())) == []
    merchant_id, close = proof.shop.merchant.pk, proof.proof().close
    given = (merchant_id, close.day, json.loads(close.body))
    assert proofs.count(*given, recount.SQL) == proofs.count(*given)
    call_command("proof", merchant_id, "--day", "2026-11-21")


def test_second_program_finds_a_signed_figure_that_the_rows_do_not_have(
    proof: ProofShop, day: dict[str, Any], noon: datetime
) -> None:
    body = json.dumps(day | {"callbacks": None}, separators=(",", ":"))
    with connection.cursor() as cursor:  # as the owner of the table could
        cursor.execute("ALTER TABLE operations_proofday DISABLE TRIGGER USER")
        cursor.execute("UPDATE operations_proofday SET body = %s, signature = %s", [body, signing.sign(body)])
        cursor.execute("ALTER TABLE operations_proofday ENABLE TRIGGER USER")
    with pytest.raises(CommandError, match=r"1 figures differ\.\ncallbacks: signed None, counted {'lost': 3"):
        call_command("proof", proof.shop.merchant.pk)
    assert list(proofs.problems(DailyClose.objects.get())) == []


@pytest.mark.parametrize(("days", "part"), [({}, "no such day"), ({"day": "2026-11-20"}, "no such day")])
def test_command_names_a_day_that_is_not_there(days: dict[str, str], part: str) -> None:
    with pytest.raises(CommandError, match=part):
        call_command("proof", "mch_nobody", **days)


def test_callback_that_comes_after_the_inquiry_is_not_lost(proof: ProofShop, noon: datetime) -> None:
    for number in range(20):
        payment_id = proof.pay(noon + number * SECOND, "inquiry", after=5 * SECOND)
        if number < 15:
            proof.callback(payment_id, noon + timedelta(minutes=5))
    proof.close(noon)
    assert json.loads(proof.proof().body)["callbacks"]["lost"] == 5


def test_callback_and_webhook_after_the_close_change_nothing(
    proof: ProofShop, day: dict[str, Any], noon: datetime
) -> None:
    lost = BankTransaction.objects.filter(source="inquiry").first()
    assert lost is not None and lost.payment_id is not None
    proof.callback(lost.payment_id, noon + timedelta(hours=12, minutes=6))
    waiting = ProofDay.objects.get()
    late = noon + timedelta(hours=12, minutes=7)
    proof.attempt(Delivery.objects.get(attempt_set=None), late)
    assert list(recount.differences(waiting)) == []


def test_payment_that_staff_accepted_is_not_counted(proof: ProofShop, noon: datetime) -> None:
    for number in range(20):
        proof.pay(noon + number * SECOND)
    with time_machine.travel(noon, tick=False):
        code = proof.shop.qr_code()
        proof.report(proof.bank.notification(code, satang=149_900))
        with acting_as("staff:malee"):
            resolutions.accept(BankTransaction.objects.get(amount=149_900).pk, note="Yes.", now=noon)
    proof.close(noon)
    close = proof.proof().close
    found = proofs.count(proof.shop.merchant.pk, close.day, json.loads(close.body), recount.SQL)
    assert found.payments == 20


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, (0, 19)), (19, (0, 19)), (20, (20, 49)), (50, (50, 99)), (100, (100, 199)), (499, (200, 499)),
     (1_000, (1_000, 1_999)), (123_456, (100_000, 199_999))],
)  # fmt: skip
def test_counts_are_ranges_and_few_payments_have_no_figures(count: int, shown: tuple[int, int]) -> None:
    found = shown_of(facts(count, lost_by_inquiry=1, half_found=SECOND, all_found=SECOND))
    assert found["payments"] == {"from": shown[0], "to": shown[1]}
    assert (found["webhook"] is None, found["callbacks"] is None) == (count < 20, count < 20)


@pytest.mark.parametrize(
    ("span", "shown"),
    [(-5.0, 1), (0.2, 1), (1.0, 1), (1.01, 2), (59, 60), (61, 300), (86_400, 86_400), (86_401, 172_800),
     (400_000, 432_000)],
)  # fmt: skip
def test_times_are_rounded_up(span: float, shown: int) -> None:
    found = shown_of(facts(20, p95=span * SECOND, half_found=span * SECOND, all_found=span * SECOND))
    assert found["callbacks"]["half_found_within_s"] == found["callbacks"]["all_found_within_s"] == shown
    expected = max(0, span * 1_000)
    assert expected <= found["webhook"]["p95_ms"] < expected + 100


def test_last_audit_and_restore_drill_are_those_before_the_close(proof: ProofShop, noon: datetime) -> None:
    for hours, fields in (
        (-20, {"differences": 0}),
        (-10, {"differences": 3}),
        (-2, {"error": "OperationalError"}),
    ):
        at = noon + timedelta(hours=hours)
        JobRun.objects.create(job=NightlyJob.AUDIT, started_at=at, ended_at=at, **fields)
    JobRun.objects.create(job=NightlyJob.AUDIT, started_at=noon + timedelta(days=2), differences=0)
    call_command("open_references", "one", proof.shop.merchant.pk)  # an act, for the chain
    chain.chain_waiting()
    link = ChainLink.objects.get()
    with time_machine.travel(noon, tick=False):
        call_command("audit", "--chain-link", f"{link.number}:{link.hash}", "--drill")
    chain.chain_waiting()
    proof.close(noon)
    said, record = json.loads(proof.proof().body), AuditRecord.objects.get(act="restore_drilled")
    assert said["audit"]["differences"] == 0, "the audit of the drill"
    assert said["restore_drill"]["recorded_at"] == clock.iso(record.created_at)
    assert said["restore_drill"]["reached"] == clock.iso(link.record.created_at)
    assert list(recount.differences(proof.proof())) == []


def test_drill_of_another_database_is_refused(proof: ProofShop) -> None:
    for options in (["--drill"], ["--drill", "--chain-link", f"1:{'0' * 64}"]):
        with pytest.raises(CommandError):
            call_command("audit", *options)
    assert not AuditRecord.objects.exists()


@pytest.mark.parametrize(
    "change",
    [{"shows_proof": False}, {"suspended_at": LATER}, {"suspended_at": LATER, "moved_at": LATER}],
)  # fmt: skip
def test_merchant_that_did_not_choose_it_or_is_suspended_or_moved_has_no_page(
    proof: ProofShop, day: dict[str, Any], noon: datetime, change: dict[str, Any]
) -> None:
    assert proof.get().status_code == 200
    proof.publish(**change)
    for tail in ("", ".json"):
        assert proof.get(tail).status_code == 404
        assert proof.get(tail).content == Client().get(f"/proof/mch_{'0' * 27}{tail}").content or tail
    close_day(noon + timedelta(days=1))
    assert ProofDay.objects.count() == 1


def test_nothing_is_public_by_default(shop: Shop, noon: datetime) -> None:
    close_day(noon)
    assert Client().get(f"/proof/{shop.merchant.pk}").status_code == 404
    assert not ProofDay.objects.exists()


def test_database_refuses_the_proof_page_of_a_test_merchant(shop: Shop) -> None:
    with pytest.raises(DatabaseError, match="merchant_proof_is_live"):
        Merchant.objects.filter(pk=shop.merchant.pk).update(shows_proof=True)


COPY = "INSERT INTO operations_proofday (merchant_id, day, body, signature, close_id) SELECT"


@pytest.mark.parametrize(
    "sql",
    ["UPDATE operations_proofday SET body = body", "DELETE FROM operations_proofday",
     "TRUNCATE operations_proofday",
     f"{COPY} 'mch_x', day, body, signature, close_id FROM operations_proofday",
     f"{COPY} merchant_id, day + 1, body, signature, close_id FROM operations_proofday"],
)  # fmt: skip
def test_database_refuses_a_changed_day(day: dict[str, Any], sql: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_audit_finds_a_day_that_its_owner_changed(day: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE operations_proofday DISABLE TRIGGER USER")
        cursor.execute("UPDATE operations_proofday SET body = replace(body, '\"lost\":3', '\"lost\":0')")
        cursor.execute("ALTER TABLE operations_proofday ENABLE TRIGGER USER")
    assert [text for _id, text in closing.findings() if "proof" in text]


def test_document_is_verified_without_the_service(proof: ProofShop, day: dict[str, Any]) -> None:
    answer = proof.get(".json")
    assert (answer.headers["Content-Type"], answer.headers["Cache-Control"]) == (
        *("application/json",),
        "public, max-age=300",
    )
    found = evidence.verify(answer.content, key=signing.public_key())
    assert (found.proof, found.fingerprints) == (day, [signing.fingerprint(signing.public_key())])
    with pytest.raises(NotTrue, match="another key"):
        evidence.verify(answer.content, key="SHA256:other")
    with pytest.raises(NotTrue):
        evidence.verify(answer.content, payment_id="pay_1")


def test_every_changed_byte_of_the_document_makes_it_false(proof: ProofShop, day: dict[str, Any]) -> None:
    file = proof.get(".json").content
    for place in range(len(file)):
        with pytest.raises(NotTrue):
            evidence.verify(file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :])


def test_close_and_seal_are_no_proof(day: dict[str, Any]) -> None:
    close = DailyClose.objects.get()
    seal = close.seals.get()
    for signed in (close, seal):
        file = {"body": signed.body, "signature": signed.signature, "public_key": close.public_key}
        with pytest.raises(NotTrue, match="no seal of proof"):
            evidence.verify(json.dumps(file))


def test_command_line_verifies_a_day(proof: ProofShop, day: dict[str, Any], tmp_path: Path) -> None:
    file, thaiqr = tmp_path / "proof.json", CommandLine("", "http://127.0.0.1:1", tmp_path)
    file.write_bytes(proof.get(".json").content)
    assert thaiqr.ok("verify", str(file), "--json").json["proof"] == day
    assert "the operator signed this" in thaiqr.ok("verify", str(file)).stdout
    file.write_bytes(file.read_bytes().replace(b'lost\\":3', b'lost\\":0'))
    done = thaiqr("verify", str(file))
    assert (done.code, "false" in done.stdout) == (5, True)


def test_page_has_no_name_amount_reference_or_id_of_a_payment(proof: ProofShop, day: dict[str, Any]) -> None:
    shown = proof.get(lang="en").content.decode() + proof.get(".json").content.decode()
    money = BankTransaction.objects.filter(source="callback")
    for text in (
        "Somchai",
        "Jaidee",
        "1234567890",
        "1,500",
        "150000",
        BILLER,
        *money.values_list("reference1", flat=True),
    ):
        assert text not in shown
    for word in ("pay_", "qr_", "btx_", "evt_", "wh_", "shop.example"):
        assert word not in shown


def test_page_speaks_thai_and_english_and_may_be_cached(proof: ProofShop, day: dict[str, Any]) -> None:
    english = proof.get(lang="en")
    for text in ("Somtam House", "21 Nov 2026", "20 to 49", "95 of 100 within 9.0 s", "within 1 minute"):
        assert text in english.content.decode()
    thai = proof.get()
    assert (thai.headers["Content-Language"], thai.headers["Vary"]) == ("th", "Accept-Language")
    assert thai.headers["Cache-Control"] == "public, max-age=300"
    for text in ("21 พ.ย. 2569", "20 ถึง 49", "95 ใน 100", "ไม่มีการแจ้งจากธนาคาร"):
        assert text in thai.content.decode()
    assert "Payments" not in thai.content.decode()
    assert "default-src 'none'" in thai.headers["Content-Security-Policy"]


def test_each_day_stays_readable(proof: ProofShop, day: dict[str, Any], noon: datetime) -> None:
    close_day(noon + timedelta(days=1))
    newest = proof.get(lang="en").content.decode()
    assert newest.count("<tr>") == 3
    assert "fewer than 20" in newest
    assert "20 to 49" in proof.get(lang="en", day="2026-11-21").content.decode()
    older = json.loads(proof.get(".json", day="2026-11-21").content)
    assert json.loads(older["body"]) == day
    for wrong in ("2026-11-20", "yesterday", "2569-11-21", "\0"):
        assert proof.get(day=wrong).status_code == proof.get(".json", day=wrong).status_code == 404


def test_page_of_the_first_day_says_when_figures_come(proof: ProofShop) -> None:
    proof.publish()
    assert "The first day is here after the night" in proof.get(lang="en").content.decode()
    assert proof.get(".json").status_code == 404


def test_visitors_of_a_network_are_limited(
    proof: ProofShop, day: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "RATE", RateLimit(per_second=0.001, burst=2))
    answers = [proof.get(tail) for tail in ("", ".json", "", ".json")]
    assert [each.status_code for each in answers] == [200, 200, 429, 429]
    assert all(each.headers["Retry-After"] for each in answers[2:])


def test_page_only_reads(proof: ProofShop) -> None:
    for send in (Client().post, Client().put, Client().delete):
        assert send(f"/proof/{proof.shop.merchant.pk}").status_code == 405


def test_staff_and_the_owner_switch_it_and_a_manager_cannot(proof: ProofShop) -> None:
    staff, owner = staff_client("somsri", "view_merchant", "set_proof"), person_of(proof.shop)
    path = f"/shop/merchants/merchant/{quote(proof.shop.merchant.pk)}/do"
    page = run_act(staff, Merchant, proof.shop.merchant.pk, "publish-proof")
    link = f'href="/proof/{proof.shop.merchant.pk}"'
    assert (Merchant.objects.get().shows_proof, link in page) == (True, True)
    assert link in owner.get(path.removesuffix("do") + "change/").content.decode()
    assert owner.post(f"{path}/withdraw-proof/", act_form()).status_code == 302
    assert not Merchant.objects.get().shows_proof
    manager = person_of(proof.shop, ShopRole.MANAGER)
    assert manager.post(f"{path}/publish-proof/", act_form()).status_code == 403
    records = AuditRecord.objects.filter(act="proof_switched").order_by("pk")
    assert [each.after for each in records] == [
        {"shows_proof": True},
        {"shows_proof": False},
    ]


def test_test_merchant_has_no_proof_page(shop: Shop) -> None:
    shown = run_act(
        staff_client("somsri", "view_merchant", "set_proof"), Merchant, shop.merchant.pk, "publish-proof"
    )
    assert "Only a live merchant has a proof page." in shown
    assert not Merchant.objects.get().shows_proof


def test_forged_document_prints_nothing_else(proof: ProofShop, tmp_path: Path) -> None:
    file, thaiqr = tmp_path / "proof.json", CommandLine("", "http://127.0.0.1:1", tmp_path)
    for text in ("[/red]", "[conceal]hidden[/conceal]"):
        body = json.dumps({"kind": "proof", "version": 1, "day": text})
        signed = {"body": body, "signature": signing.sign(body), "public_key": signing.public_key()}
        file.write_text(json.dumps(signed))
        assert text in thaiqr.ok("verify", str(file)).stdout


def test_audits_at_the_same_time_are_counted_the_same(proof: ProofShop, noon: datetime) -> None:
    for began, ended in ((-5, -1), (-4, -3)):
        JobRun.objects.create(
            job=NightlyJob.AUDIT,
            started_at=noon + timedelta(hours=began),
            ended_at=noon + timedelta(hours=ended),
            differences=-began,
        )
    proof.close(noon)
    assert list(recount.differences(proof.proof())) == []


def test_webhook_of_a_host_whose_clock_is_behind_is_counted_the_same(
    proof: ProofShop, noon: datetime
) -> None:
    proof.webhook()
    midnight = noon - timedelta(hours=12)
    for number in range(20):
        at = midnight + number * SECOND / 10
        proof.pay(at - SECOND, after=SECOND, posted=[SECOND - timedelta(milliseconds=50)])
    proof.close(noon)
    assert list(recount.differences(proof.proof())) == []


def test_day_before_the_choice_stays_unpublished(proof: ProofShop, noon: datetime) -> None:
    """The key came late, so the day is closed after the choice."""
    for number in range(20):
        proof.pay(noon + number * SECOND)
    run_act(
        staff_client("somsri", "view_merchant", "set_proof"),
        Merchant,
        proof.shop.merchant.pk,
        "publish-proof",
    )
    assert Merchant.objects.get().shows_proof
    close_day(noon)
    assert not ProofDay.objects.exists()


def test_other_language_shows_the_same_day(proof: ProofShop, day: dict[str, Any], noon: datetime) -> None:
    close_day(noon + timedelta(days=1))
    shown = proof.get(lang="en", day="2026-11-21").content.decode()
    assert 'href="?lang=th&amp;day=2026-11-21"' in shown
    assert 'href="?lang=th"' in proof.get(lang="en").content.decode()


@pytest.mark.parametrize(
    ("act", "hours", "is_signed"),
    [("proof_switched", 11, True), ("proof_switched", 13, False), ("merchant_imported", -13, True),
     ("merchant_imported", -11, False), ("merchant_imported", 30, False), ("merchant_renamed", 30, True)],
)  # fmt: skip
def test_operator_signs_only_whole_days_of_its_own(
    proof: ProofShop, noon: datetime, act: str, hours: int, is_signed: bool
) -> None:
    """On the day of the import and before, another instance reported the payments."""
    key = proof.shop.merchant.pk
    AuditRecord.objects.create(
        act=act, object_id=key, merchant_id=key, created_at=noon + timedelta(hours=hours)
    )
    proof.publish()
    close_day(noon)
    assert ProofDay.objects.exists() == is_signed
