"""If a merchant's list is on, money goes only to accounts on it whose waiting period is over."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings

from approvals import payout_accounts
from approvals.models import PayoutAccount
from approvals.payout_accounts import PayoutAccountListed
from approvals.services import NotDecidable
from core import clock, vault
from merchants.models import Merchant
from tests.approvals.builders import MALEE, add_payout_account, decide_approval, staff, waiting
from tests.approvals.test_refunds import unknown_payer
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.error_messages import check_error
from tests.refunds.builders import PAYEE, RefundShop, error_of
from tests.security_lines import security_lines
from tests.staff_acts import REASON, acts_of_staff, run_act, send_act
from tests.transfers.builders import Bank
from tests.withdrawals.builders import ACCOUNT, PATH, fund, withdrawal_request, withdrawn

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
LIST = "/admin/approvals/payoutaccount/"


@pytest.fixture
def shop(shop: Shop, bank: SandboxBankClient) -> Shop:
    fund(shop, bank, 1_000_000)
    return shop


@pytest.fixture
def restricted(shop: Shop) -> Shop:
    with acting_as(MALEE):
        payout_accounts.restrict(shop.merchant, True, now=clock.now())
    return shop


def remove(account: PayoutAccount) -> None:
    with acting_as(MALEE):
        payout_accounts.remove(account.id, now=clock.now())


def refused(shop: Shop, **changes: Any) -> tuple[int, str, str | None]:
    return error_of(shop.post(PATH, withdrawal_request(**changes)))


NOT_ALLOWED = (400, "payout_account_not_allowed", "bank_account")
TOO_NEW = (400, "payout_account_too_new", "bank_account")


def test_withdrawal_to_any_account_is_allowed_without_a_list(shop: Shop) -> None:
    add_payout_account(shop)
    assert withdrawn(shop, bank_account="4059999999")["status"] == "pending"


def test_withdrawal_to_an_account_that_is_not_on_the_list_is_refused(restricted: Shop) -> None:
    held = restricted.get("/v1/balance").json()
    assert refused(restricted) == NOT_ALLOWED
    answer = restricted.post(PATH, withdrawal_request())
    check_error(answer.json(), "payout_account_not_allowed", account="bank_account")
    add_payout_account(restricted)
    assert refused(restricted, bank_account="4059999999") == NOT_ALLOWED
    assert refused(restricted, bank_code="004") == NOT_ALLOWED
    assert restricted.get("/v1/balance").json() == held
    assert withdrawn(restricted)["status"] == "pending"


def test_new_payout_account_is_refused_during_the_waiting_period(restricted: Shop) -> None:
    now = clock.now()
    with time_machine.travel(now, tick=False) as machine:
        made = add_payout_account(restricted, age=timedelta(0))
        assert made.usable_at == now + timedelta(hours=24)
        answer = restricted.post(PATH, withdrawal_request())
        assert error_of(answer) == TOO_NEW
        usable_at = clock.iso(made.usable_at)
        check_error(answer.json(), "payout_account_too_new", account="bank_account", usable_at=usable_at)
        machine.shift(timedelta(hours=24, milliseconds=-1))
        assert refused(restricted) == TOO_NEW
        machine.shift(timedelta(milliseconds=1))
        assert withdrawn(restricted)["status"] == "pending"


def test_removed_payout_account_is_refused_at_once(restricted: Shop) -> None:
    made = add_payout_account(restricted)
    withdrawn(restricted)
    remove(made)
    assert refused(restricted) == NOT_ALLOWED


def test_payout_account_removed_during_the_waiting_period_is_refused(
    restricted: Shop, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    made, asked = add_payout_account(restricted), withdrawn(restricted)["withdrawal_id"]
    remove(made)
    with pytest.raises(NotDecidable, match="not on the merchant's list"):
        decide_approval(asked, "approve")
    assert waiting() == [asked]
    decide_approval(asked, "reject")


def test_waiting_refund_to_a_removed_payout_account_is_not_approved(
    restricted: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    refund_shop, account = RefundShop(restricted, bank), add_payout_account(restricted, bank_code="004")
    refund = refund_shop.refund(refund_shop.paid(), destination=PAYEE)
    remove(account)
    with pytest.raises(NotDecidable, match="not on the merchant's list"):
        decide_approval(refund["refund_id"], "approve")
    assert waiting() == [refund["refund_id"]]
    assert refund_shop.read(refund) == refund
    decide_approval(refund["refund_id"], "reject")


def test_payout_accounts_are_listed_per_merchant(
    restricted: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    add_payout_account(other_shop)
    assert refused(restricted) == NOT_ALLOWED
    fund(other_shop, bank)
    assert withdrawn(other_shop, bank_account="4059999999")["status"] == "pending"


def test_refund_to_an_account_that_is_not_on_the_list_is_refused(
    restricted: Shop, bank: SandboxBankClient
) -> None:
    refund_shop = RefundShop(restricted, bank)
    payment_id, held = refund_shop.paid(), refund_shop.balance()
    answer = refund_shop.ask(payment_id, destination=PAYEE)
    assert error_of(answer) == (400, "payout_account_not_allowed", "destination")
    check_error(answer.json(), "payout_account_not_allowed", account="destination.bank_account")
    assert refund_shop.balance() == held
    add_payout_account(restricted, bank_code="004")
    assert refund_shop.refund(payment_id, destination=PAYEE)["status"] == "pending"


def test_refund_to_the_payers_account_needs_no_list(restricted: Shop, bank: SandboxBankClient) -> None:
    refund_shop = RefundShop(restricted, bank)
    assert refund_shop.refund(refund_shop.paid())["pending_reason"] == "processing"


def test_refund_waits_if_the_qr_codes_account_is_not_on_the_list(
    restricted: Shop, bank: SandboxBankClient
) -> None:
    refund_shop = RefundShop(restricted, bank)
    client = {"client_bank_name": "kbank", "client_bank_account": ACCOUNT}
    refund = refund_shop.refund(unknown_payer(refund_shop, **client))
    assert refund["pending_reason"] == "awaiting_destination"
    assert error_of(refund_shop.act(refund, "destination", PAYEE)) == NOT_ALLOWED
    add_payout_account(restricted, bank_code="004")
    assert refund_shop.act(refund, "destination", PAYEE).json()["pending_reason"] == "processing"


def test_payout_account_is_sealed_and_found_after_key_rotation(restricted: Shop, settings: Settings) -> None:
    made = add_payout_account(restricted)
    assert ACCOUNT not in made.account_sealed + made.account_fingerprint
    old, new = settings.FIELD_ENCRYPTION_KEYS[0], vault.new_key()
    settings.FIELD_ENCRYPTION_KEYS = [new, old]
    assert withdrawn(restricted)["status"] == "pending"
    with pytest.raises(PayoutAccountListed):
        add_payout_account(restricted)
    call_command("reseal", stdout=io.StringIO())
    settings.FIELD_ENCRYPTION_KEYS = [new]
    assert withdrawn(restricted)["status"] == "pending"
    assert PayoutAccount.objects.get().account == ACCOUNT


@pytest.mark.parametrize(
    "change",
    [
        "bank_code = '004'",
        "account_sealed = 'x'",
        "account_fingerprint = 'x'",
        "added_by = 'staff:x'",
        "usable_at = added_at",
        "merchant_id = 'mch_x'",
    ],
)
def test_payout_account_never_changes(shop: Shop, change: str) -> None:
    add_payout_account(shop)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE approvals_payoutaccount SET {change}")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE approvals_payoutaccount SET removed_at = NULL, removed_by = ''",
        "DELETE FROM approvals_payoutaccount",
        "TRUNCATE approvals_payoutaccount CASCADE",
    ],
)
def test_removed_payout_account_is_kept_as_a_record(shop: Shop, sql: str) -> None:
    remove(add_payout_account(shop))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(sql)


@pytest.mark.django_db(transaction=True)
def test_concurrently_added_payout_account_is_listed_once(shop: Shop) -> None:
    def ask() -> bool:
        try:
            add_payout_account(shop)
        except PayoutAccountListed:
            return False
        return True

    assert sum(run_concurrently(*[ask] * 8)) == 1
    assert PayoutAccount.objects.count() == 1


# --- staff --------------------------------------------------------------------------------------------


@pytest.fixture
def anong(db: None) -> Client:
    granted = ["add_payoutaccount", "delete_payoutaccount", "change_payoutpolicy", "view_personal_data"]
    return staff("anong", "view_payoutaccount", "view_payoutpolicy", "view_merchant", *granted)


def form(**changes: str) -> dict[str, str]:
    return {"bank_code": "SCB", "bank_account": ACCOUNT, "account_name": "Somchai"} | changes


def do(client: Client, shop: Shop, slug: str, **values: str) -> str:
    """Do an act on the page of the merchant."""
    return run_act(client, Merchant, shop.merchant.pk, slug, **values)


def test_bank_of_a_payout_account_is_chosen_by_its_name(shop: Shop, anong: Client) -> None:
    key = shop.merchant.pk.replace("_", "_5F")
    page = f"/admin/merchants/merchant/{key}/do/add-payout-account/"
    shown = anong.get(page, headers={"Accept-Language": "th"}).text
    assert '<option value="004">ธนาคารกสิกรไทย</option>' in shown


def test_staff_add_and_remove_payout_accounts_and_enable_the_list(shop: Shop, anong: Client) -> None:
    assert "Add a payout account: done." in do(anong, shop, "add-payout-account", **form())
    assert "only to accounts on the list" in do(anong, shop, "switch-payout-list-on")
    made = PayoutAccount.objects.get()
    assert (made.added_by, made.bank_code, made.account) == ("staff:anong", "014", ACCOUNT)
    text = anong.get(LIST).content.decode()
    assert ("4567" in text, ACCOUNT in text) == (True, False)
    assert refused(shop) == TOO_NEW
    assert "at once: done." in run_act(anong, PayoutAccount, made.id, "remove")
    assert "nothing changed" in run_act(anong, PayoutAccount, made.id, "remove")
    assert refused(shop) == NOT_ALLOWED
    do(anong, shop, "switch-payout-list-off")
    assert withdrawn(shop)["status"] == "pending"
    acts = [(each.act, each.merchant_id, each.reason) for each in acts_of_staff()]
    wanted = (
        "payout_account_added",
        "payout_list_switched",
        "payout_account_removed",
        "payout_list_switched",
    )
    assert acts == [(act, shop.merchant.id, REASON) for act in wanted]


@pytest.mark.parametrize(
    ("changes", "expected_text"),
    [
        ({"bank_code": "999"}, "is not the code or short name of a bank"),
        ({"bank_account": "12"}, "errorlist"),
        ({"account_name": ""}, "required"),
        ({"reason": ""}, "required"),
    ],
)
def test_invalid_payout_account_is_not_added(
    shop: Shop, anong: Client, changes: dict[str, str], expected_text: str
) -> None:
    assert expected_text in do(anong, shop, "add-payout-account", **form(**changes))
    assert not PayoutAccount.objects.exists()


def test_list_is_not_switched_without_a_reason(shop: Shop, anong: Client) -> None:
    assert "required" in do(anong, shop, "switch-payout-list-on", reason=" ")
    assert not payout_accounts.is_restricted(shop.merchant.id)


def test_payout_account_cannot_be_added_twice(shop: Shop, anong: Client) -> None:
    add_payout_account(shop)
    assert "on this merchant" in do(anong, shop, "add-payout-account", **form())


def test_second_click_adds_no_payout_account_and_switches_nothing(shop: Shop, anong: Client) -> None:
    added, switched = (str(uuid4()) for _ in range(2))
    do(anong, shop, "add-payout-account", **form(token=added))
    payout_accounts.remove(PayoutAccount.objects.get().id, now=clock.now())
    assert "Nothing changed." in do(anong, shop, "add-payout-account", **form(token=added))
    assert not PayoutAccount.objects.filter(removed_at=None).exists()
    do(anong, shop, "switch-payout-list-on", token=switched)
    payout_accounts.restrict(shop.merchant, False, now=clock.now())
    assert "Nothing changed." in do(anong, shop, "switch-payout-list-on", token=switched)
    assert not payout_accounts.is_restricted(shop.merchant.id)


def test_page_of_the_merchant_offers_what_changes_its_list(shop: Shop, anong: Client) -> None:
    acts = f"/admin/merchants/merchant/{quote(shop.merchant.pk)}/do"
    page = anong.get(acts.removesuffix("do") + "change/").content.decode()
    assert f"{acts}/add-payout-account/" in page
    assert f"{acts}/switch-payout-list-on/" in page and "/switch-payout-list-off/" not in page
    add_payout_account(shop)
    asked = anong.get(f"{acts}/switch-payout-list-on/").content.decode()
    assert "of which it has 1" in asked


def test_staff_without_permission_cannot_change_payout_accounts(shop: Shop) -> None:
    made, intern = add_payout_account(shop), staff("intern", "view_payoutaccount", "view_merchant")
    for slug in ("add-payout-account", "switch-payout-list-on", "switch-payout-list-off"):
        assert send_act(intern, Merchant, shop.merchant.pk, slug, **form()).status_code == 403
    assert send_act(intern, PayoutAccount, made.id, "remove").status_code == 403
    assert PayoutAccount.objects.filter(removed_at=None).count() == 1
    assert not payout_accounts.is_restricted(shop.merchant.id)


def command(*words: str) -> str:
    output = io.StringIO()
    with acting_as("command:payout_accounts"):
        call_command("payout_accounts", *words, stdout=output)
    return output.getvalue()


def test_command_adds_lists_and_removes_payout_accounts(shop: Shop) -> None:
    merchant = shop.merchant.id
    account = ["--bank", "SCB", "--account", ACCOUNT, "--name", "Somchai"]
    assert "to be used from" in command("add", merchant, *account)
    assert "is on" in command("on", merchant)
    assert refused(shop) == TOO_NEW
    made = PayoutAccount.objects.get()
    listed = command("list", merchant)
    assert (made.id in listed, ACCOUNT in listed) == (True, False)
    assert "Removed" in command("remove", made.id)
    command("off", merchant)
    assert withdrawn(shop)["status"] == "pending"


def test_payout_account_command_refuses_invalid_input(shop: Shop) -> None:
    merchant = shop.merchant.id
    add_payout_account(shop)
    for arguments, expected_text in [
        (["add", merchant, "--bank", "nobank", "--account", ACCOUNT, "--name", "S"], "bank does not exist"),
        (["add", merchant, "--bank", "SCB", "--account", "12", "--name", "S"], "--account"),
        (["add", merchant, "--bank", "SCB", "--account", ACCOUNT, "--name", "S"], "already"),
        (["on", "mch_0"], "No merchant"),
        (["remove", "pac_0"], "No such account"),
    ]:
        with pytest.raises(CommandError, match=expected_text):
            command(*arguments)


def test_payout_account_changes_are_logged_without_the_account(
    shop: Shop, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), acting_as(MALEE):
        payout_accounts.restrict(shop.merchant, True, now=clock.now())
        account = add_payout_account(shop)
        payout_accounts.remove(account.id, now=clock.now())
    [switched] = security_lines(caplog, "payout_list_switched")
    [added] = security_lines(caplog, "payout_account_added")
    [removed] = security_lines(caplog, "payout_account_removed")
    assert switched["changes"] == ["+is_restricted"]
    assert added["subject"] == removed["subject"] == account.id
    assert {line["merchant"] for line in (switched, added, removed)} == {shop.merchant.pk}
    assert ACCOUNT not in caplog.text
    assert "Somchai" not in caplog.text
