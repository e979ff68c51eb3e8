"""A merchant with two banks: new codes go to its stand-by while the first fails. Codes keep their bank."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.utils import ProgrammingError

from audit_trail.models import AuditRecord
from core import clock
from core.database import rows
from ledger.models import Entry
from merchants import bank_connections
from merchants.models import Merchant
from payments import fee_terms
from qrcodes import services
from qrcodes.models import QrCode
from reconciliation.inquiries import standby
from reconciliation.models import Backoff, BankRateLimit, Inquiry
from reconciliation.statements import importing, reconciliation, statement_file
from tests import audit
from tests.banks import fake_scb, two_banks
from tests.banks.fake_bbl import BILLER as BBL_BILLER, FakeBbl, signed
from tests.banks.fake_scb import BILLER as SCB_BILLER
from tests.banks.two_banks import MortalScb, biller_of
from tests.concurrency import run_concurrently
from tests.conftest import Shop, new_client, open_shop
from tests.merchants.connection_configs import BBL_CONFIG, SCB_CONFIG
from tests.reconciliation.inquiries.builders import sweep
from tests.reconciliation.statements.statement_files import csv_file
from tests.reconciliation.statements.test_fees import WITH_FEE, with_fee
from tests.webhook_receiver import Reply

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def scb() -> Iterator[MortalScb]:
    with MortalScb.running() as bank:
        yield bank


@pytest.fixture
def bbl() -> Iterator[FakeBbl]:
    with FakeBbl.running() as bank:
        yield bank


@pytest.fixture
def addresses() -> dict[str, str]:
    """The secrets of the notification addresses, by bank."""
    return {}


@pytest.fixture
def live(db: None, scb: MortalScb, bbl: FakeBbl, addresses: dict[str, str]) -> Shop:
    shop = open_shop("Somtam House", mode="live")
    addresses["scb"] = scb.connect(shop)
    addresses["bbl"] = connect_standby(shop, bbl)
    return shop


def connect_standby(shop: Shop, bank: FakeBbl, **changes: Any) -> str:
    config = replace(two_banks.standby_config(bank), **changes)
    _, secret = bank_connections.connect(
        merchant_id=shop.merchant.id, config=config, now=clock.now(), is_standby=True
    )
    shop.merchant.refresh_from_db()
    return str(secret)


def uses_standby(shop: Shop) -> bool:
    return Merchant.objects.get(pk=shop.merchant.pk).uses_standby


def fail_over(shop: Shop, scb: MortalScb) -> list[dict[str, Any]]:
    """Codes of a bank that dies then."""
    codes = [shop.qr_code(expiry_minutes=60) for _ in range(2)]
    scb.is_dead = True
    assert sweep() == 2
    assert uses_standby(shop)
    return codes


def return_after(span: timedelta) -> None:
    BankRateLimit.objects.update(available_at=clock.now() - timedelta(days=1))
    standby.return_codes(now=lambda: clock.now() + span)


def test_new_codes_go_to_the_standby_while_the_bank_is_silent(live: Shop, scb: MortalScb) -> None:
    first = fail_over(live, scb)
    code = live.qr_code()
    assert [biller_of(each) for each in (*first, code)] == [SCB_BILLER, SCB_BILLER, BBL_BILLER]
    assert sorted(QrCode.objects.values_list("bank", flat=True)) == ["bbl", "scb", "scb"]
    record = AuditRecord.objects.get(act="codes_moved")
    assert (record.object_id, record.after["uses_standby"]) == (live.merchant.pk, True)
    sweep(600)
    assert dict(Inquiry.objects.values_list("payment__qr_code__bank", "bank")) == {"scb": "scb", "bbl": "bbl"}


def test_one_lost_call_moves_no_codes_and_the_second_batch_does(live: Shop, scb: MortalScb) -> None:
    live.qr_code(expiry_minutes=60)
    scb.is_dead = True
    assert (sweep(6), uses_standby(live)) == (1, False)
    assert (sweep(20), uses_standby(live)) == (1, True)


def test_bank_that_answers_in_part_keeps_its_codes(live: Shop, scb: MortalScb) -> None:
    codes = [live.qr_code(expiry_minutes=60) for _ in range(4)]
    query = f"eventCode=00300100&transactionDate=2026-11-21&billerId={SCB_BILLER}&reference1="
    silent = {f"{fake_scb.INQUIRY}?{query}{two_banks.reference_of(each)}" for each in codes[:3]}
    answer = scb.reply_to
    scb.reply_to = lambda request: (  # type: ignore[method-assign]
        fake_scb.error_response(500) if request.path in silent else answer(request)
    )
    assert (sweep(), uses_standby(live)) == (4, False)


def test_bank_whose_notifications_come_keeps_its_codes(
    live: Shop, scb: MortalScb, addresses: dict[str, str]
) -> None:
    for _ in range(2):
        live.qr_code(expiry_minutes=60)
    scb.is_dead = True
    with time_machine.travel(clock.now() + timedelta(seconds=6), tick=False):
        path = f"/banks/scb/notifications/{addresses['scb']}"
        body = fake_scb.confirmation()
        assert new_client().post(path, body, content_type="application/json").status_code == 200
        sweep(0.2)
        assert not uses_standby(live)
        sweep(20)
    assert uses_standby(live)


def test_silent_bank_moves_the_codes_of_its_other_merchants(live: Shop, scb: MortalScb, bbl: FakeBbl) -> None:
    """Also of one without an open code, but not of one without a stand-by."""
    idle, single = (open_shop(name, mode="live") for name in ("Idle", "Single"))
    scb.connect(idle, "0" * 15)
    connect_standby(idle, bbl, biller_id="1" * 15)
    scb.connect(single, "2" * 15)
    live.qr_code(expiry_minutes=60)
    single.qr_code(expiry_minutes=60)
    scb.is_dead = True
    sweep()
    assert [uses_standby(shop) for shop in (live, idle, single)] == [True, True, False]
    assert biller_of(single.qr_code()) == "2" * 15


def test_codes_return_when_the_bank_answers_again(live: Shop, scb: MortalScb) -> None:
    """After a minute at the stand-by at the earliest."""
    fail_over(live, scb)
    return_after(2 * MINUTE)
    assert uses_standby(live), "it is dead"
    scb.is_dead = False
    return_after(MINUTE / 2)
    assert uses_standby(live), "it was away for less than a minute"
    return_after(2 * MINUTE)
    assert (uses_standby(live), Backoff.objects.count()) == (False, 0)
    assert biller_of(live.qr_code()) == SCB_BILLER


def test_bank_that_is_down_is_asked_once_for_all_its_merchants(
    live: Shop, scb: MortalScb, bbl: FakeBbl
) -> None:
    other = open_shop("Other", mode="live")
    scb.connect(other, "0" * 15)
    connect_standby(other, bbl, biller_id="1" * 15)
    fail_over(live, scb)
    bank_connections.move_codes(other.merchant.pk, to_standby=True, now=clock.now())
    before = len(scb.requests)
    return_after(2 * MINUTE)
    assert len(scb.requests) - before == 1
    scb.is_dead = False
    return_after(2 * MINUTE)
    assert [uses_standby(shop) for shop in (live, other)] == [False, False]


def test_money_of_both_banks_is_credited_to_its_codes(
    live: Shop, scb: MortalScb, bbl: FakeBbl, addresses: dict[str, str]
) -> None:
    """An open code of the first bank is found when it answers again, with the fees of its bank."""
    today = clock.now()
    for is_of_standby, rate in ((False, 100), (True, 200)):
        fee_terms.set_terms(
            live.merchant, starts_on=today.date(), fixed=0, rate=rate, vat_rate=0,
            now=today - timedelta(days=1), is_of_standby=is_of_standby,
        )  # fmt: skip
    old, _ = fail_over(live, scb)
    new = live.qr_code(expiry_minutes=60)
    body = two_banks.pushed(new, clock.now())
    path, headers = (
        f"/banks/bbl/notifications/{addresses['bbl']}",
        {"Signature": signed(body, now=clock.now())},
    )
    sent = new_client().post(path, body, content_type="application/json", headers=headers)
    assert (sent.status_code, live.payment(new["payment_id"])["status"]) == (200, "succeeded")
    scb.pay(old, clock.now())
    scb.is_dead = False
    sweep(600)
    shown = [live.payment(each["payment_id"]) for each in (old, new)]
    assert [(each["status"], each["fee"]) for each in shown] == [("succeeded", 1_500), ("succeeded", 3_000)]
    entries = Entry.objects.filter(account__in=("bank:scb", "bank:bbl")).values_list("account", "amount")
    assert dict(entries) == {"bank:scb": -150_000, "bank:bbl": -150_000}
    assert audit.differences() == []


def test_money_at_the_other_bank_with_the_reference_of_a_code_is_not_credited(
    live: Shop, scb: MortalScb, addresses: dict[str, str]
) -> None:
    """Only the bank of the code can confirm it."""
    old, _ = fail_over(live, scb)
    body = two_banks.pushed(old, clock.now())
    path, headers = (
        f"/banks/bbl/notifications/{addresses['bbl']}",
        {"Signature": signed(body, now=clock.now())},
    )
    assert new_client().post(path, body, content_type="application/json", headers=headers).status_code == 200
    assert live.payment(old["payment_id"])["status"] == "pending"


@pytest.mark.django_db(transaction=True)
def test_two_workers_move_the_codes_once(live: Shop) -> None:
    def move() -> None:
        bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())

    run_concurrently(move, move)
    assert AuditRecord.objects.filter(act="codes_moved").count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_biller_id_goes_to_one_of_two_merchants_at_once(bbl: FakeBbl) -> None:
    """As the first bank of one and the stand-by of the other, at the same moment."""
    first, second = (open_shop(name, mode="live") for name in ("One", "Two"))
    bank_connections.connect(merchant_id=second.merchant.pk, config=SCB_CONFIG, now=clock.now())

    def attempt(shop: Shop, *, is_standby: bool) -> bool:
        config = two_banks.standby_config(bbl)
        try:
            bank_connections.connect(
                merchant_id=shop.merchant.pk, config=config, now=clock.now(), is_standby=is_standby
            )
        except (ValidationError, IntegrityError):
            return False
        return True

    made = run_concurrently(
        lambda: attempt(first, is_standby=False), lambda: attempt(second, is_standby=True)
    )
    assert sorted(made) == [False, True]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (
            {"standby_bank": "bbl", "standby_biller_id": "9" * 15, "standby_reference2": "X"},
            "keeps that bank",
        ),
        ({"bank_changed_at": None}, "keeps that bank|standby_since"),
        ({"standby_bank": "scb"}, "another_bank|keeps that bank"),
        ({"standby_bank": "", "standby_biller_id": ""}, "another_bank|keeps that bank"),
    ],
)
def test_database_keeps_a_standby_that_was_used(live: Shop, changes: dict[str, Any], name: str) -> None:
    bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Merchant.objects.filter(pk=live.merchant.pk).update(**changes)


def test_database_refuses_a_code_of_a_bank_that_its_merchant_does_not_have(live: Shop) -> None:
    live.merchant.standby_biller_id, live.merchant.uses_standby = "9" * 15, True
    new = services.generate(
        merchant=live.merchant, subscriptions=[], now=clock.now(), amount=100, expiry_minutes=5
    )
    with pytest.raises(IntegrityError, match="a bank and a biller id of its merchant"), transaction.atomic():
        rows.insert_together(new.rows)
    with pytest.raises(ProgrammingError, match="never changes"), transaction.atomic():
        QrCode.objects.filter(pk=live.qr_code()["payment_id"]).update(bank="bbl")


def test_standby_is_another_bank_of_a_connected_live_merchant(live: Shop, bbl: FakeBbl) -> None:
    other = open_shop("Other", mode="live")
    with pytest.raises(ValidationError, match="at another bank"):
        connect_standby(other, bbl, biller_id="3" * 15)
    with pytest.raises(ValidationError, match="Another merchant has this biller id"):
        bank_connections.connect(merchant_id=other.merchant.pk, config=BBL_CONFIG, now=clock.now())
    with pytest.raises(ValidationError, match="at another bank"):
        bank_connections.connect(
            merchant_id=live.merchant.pk, config=SCB_CONFIG, now=clock.now(), is_standby=True
        )
    with pytest.raises(ValidationError, match="sandbox bank"):
        connect_standby(open_shop("Test"), bbl)
    connect_standby(live, bbl, biller_id="4" * 15)
    bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())
    with pytest.raises(ValidationError, match="keeps its bank and biller id"):
        connect_standby(live, bbl, biller_id="5" * 15)


def test_one_broken_merchant_moves_no_others_after_the_return(
    live: Shop, scb: MortalScb, bbl: FakeBbl
) -> None:
    idle, broken = (open_shop(name, mode="live") for name in ("Idle", "Broken"))
    scb.connect(idle, "0" * 15)
    connect_standby(idle, bbl, biller_id="1" * 15)
    scb.connect(broken, "2" * 15)
    live.qr_code(expiry_minutes=60)
    broken.qr_code(expiry_minutes=600)
    scb.is_dead = True
    sweep()
    assert uses_standby(idle)
    scb.is_dead = False
    return_after(2 * MINUTE)
    scb.is_dead = True
    Inquiry.objects.exclude(payment__merchant=broken.merchant).update(due_at=None)
    assert (sweep(600), uses_standby(live), uses_standby(idle)) == (1, False, False)


def test_refused_credentials_of_two_merchants_move_no_others(live: Shop, scb: MortalScb) -> None:
    others = [open_shop(name, mode="live") for name in ("A", "B")]
    for shop, biller_id in zip(others, ("0" * 15, "2" * 15), strict=True):
        scb.connect(shop, biller_id)
        shop.qr_code(expiry_minutes=60)
    answer = scb.reply_to

    def refuse(request: Any) -> Any:
        return Reply(401, body=b'{"status": {"code": 1101}}') if "token" in request.path else answer(request)

    scb.reply_to = refuse  # type: ignore[method-assign]
    assert (sweep(), uses_standby(live)) == (2, False)


def test_merchant_that_has_moved_is_not_asked_about(live: Shop, scb: MortalScb) -> None:
    bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())
    Merchant.objects.filter(pk=live.merchant.pk).update(suspended_at=clock.now(), moved_at=clock.now())
    before = len(scb.requests)
    return_after(2 * MINUTE)
    assert (len(scb.requests), uses_standby(live)) == (before, True)


def test_statement_of_the_standby_is_imported(live: Shop) -> None:
    bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())
    line = with_fee(live.qr_code(), "1.00", "0.07")
    assert reconciliation.banks_with_activity(clock.now().date()) == ["bbl", "scb"]
    file = statement_file.open_file(io.BytesIO(csv_file(line, header=WITH_FEE)), "bbl.csv")
    assert importing.check(file, bank="bbl").line_count == 1
