"""One act on many exceptions: staff read what happens to each, and each is a decision of its own."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from approvals.models import Approval
from audit_trail import bulk_acts
from audit_trail.models import AuditRecord
from banks import TransferResult
from core import clock
from core.database import rows
from merchants.models import Merchant
from reconciliation.models import BankNotification, BankTransaction, ReconciliationException, Resolution
from tests.concurrency import run_concurrently
from tests.console.people.test_confirmations import make_stale
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    RESOLVES,
    Seller,
    decide,
    run_returns,
    staff_client,
    state_of,
)
from tests.reconciliation.matching.test_applying_after_crash import held
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.staff_acts import act_form, acts_of_staff
from tests.transfers.builders import Bank

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NOTE = "The shop closed <b>early</b>."
DONE = TransferResult("succeeded", "b-1")


def choose(client: Client, slug: str, bank_transactions: Iterable[Any], **fields: str) -> str:
    """Select rows in the list and choose an act."""
    selected = [getattr(each, "pk", each) for each in bank_transactions]
    form = {"action": slug, "_selected_action": selected, "index": "0", **fields}
    answer = client.post(EXCEPTIONS_URL, form, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def choices_of(page: str) -> list[str]:
    return re.findall(r'name="row" value="([^"]+)"', page)


def send(client: Client, slug: str, choices: list[str], reason: str = NOTE) -> str:
    form = act_form(row=choices, reason=reason)
    answer = client.post(f"{EXCEPTIONS_URL}do/{slug}/", form, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def results_of(page: str) -> list[str]:
    """The last cell of each row."""
    cells = re.findall(r"<td>((?:(?!</td>).)*)</td>\s*</tr>", page, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in cells]


def test_money_of_several_exceptions_is_sent_back_with_a_record_for_each(
    seller: Seller, malee: Client, served_by: Callable[..., Bank]
) -> None:
    bank = served_by(sends=[DONE, DONE])
    bank_transactions = [seller.unmatched(), seller.mismatch(149_900)]
    page = choose(malee, "send-back", bank_transactions)
    assert "Send back: 2 exceptions, 2,999.00 THB." in page
    assert "1,499.00 THB is sent back to the payer, Somchai Jaidee" in page
    assert all(part in page for part in ("Somtam House (test)", "Unknown reference", "Wrong amount"))
    assert not Resolution.objects.exists()
    text = send(malee, "send-back", choices_of(page))
    assert "Done: 2." in text
    assert results_of(text) == ["Send back: done.", "Send back: done."]
    assert {each.object_id for each in acts_of_staff()} == {each.id for each in bank_transactions}
    assert {each.reason for each in acts_of_staff()} == {NOTE}
    run_returns()
    assert len(bank.sent) == 2
    assert {state_of(each)[1] for each in bank_transactions} == {"sent_back"}


def test_row_that_a_colleague_resolved_meanwhile_is_refused_and_others_are_done(
    seller: Seller, malee: Client
) -> None:
    late, taken = seller.late(), seller.late()
    choices = choices_of(choose(malee, "accept", [taken, late]))
    decide("accept", taken, actor="staff:somsak")
    text = send(malee, "accept", choices)
    assert "Done: 1. Refused: 1." in text
    refused, done = results_of(text)
    assert "This is not possible now." in refused
    assert done == "Accept: done."
    assert state_of(late)[1] == "accepted"
    assert Resolution.objects.get(subject_id=taken.id).actor == "staff:somsak"


def test_act_on_unconfirmed_money_does_not_read_who_uploaded_it(seller: Seller, malee: Client) -> None:
    now, code = clock.now(), replace(seller.shop, codes_made_at=clock.now() - timedelta(days=2)).qr_code()
    seller.report(code, paid_at=now - timedelta(days=1))
    import_file(bot_file(credit_line(code, now)))
    bank_transaction = BankTransaction.objects.get(is_confirmed=False)
    with CaptureQueriesContext(connection) as asked:
        assert "Merge as duplicate: 1 exception, 1,500.00 THB." in choose(malee, "merge", [bank_transaction])
    assert not [each for each in asked if "reconciliation_statementline" in each["sql"]]


def test_row_that_changed_since_the_page_was_shown_is_refused(seller: Seller, malee: Client) -> None:
    choices = choices_of(choose(malee, "accept", [seller.mismatch()]))
    Merchant.objects.update(name="Somebody else")
    assert results_of(send(malee, "accept", choices)) == [
        "Refused It has changed since you saw it. Look at it again."
    ]
    assert not Resolution.objects.exists()


def test_rows_for_which_an_act_is_not_possible_are_named_before_the_confirmation(
    seller: Seller, malee: Client
) -> None:
    seller.bank.post(b"garbage")
    message = BankNotification.objects.get(result="unreadable")
    page = choose(malee, "accept", [seller.mismatch(), message])
    assert len(choices_of(page)) == 1
    assert "Accept: 1 exception, 1,499.00 THB." in page
    assert "Refused: 1." in page
    assert "This is not possible now." in page
    nothing = choose(malee, "accept", [message, "btx_" + "0" * 27, "x\0"])
    assert choices_of(nothing) == []
    assert "This is possible for none of the chosen rows." in nothing
    assert "It does not exist." in nothing


def test_reason_is_required_and_the_rows_stay_chosen(seller: Seller, malee: Client) -> None:
    choices = choices_of(choose(malee, "accept", [seller.mismatch(), seller.late()]))
    again = send(malee, "accept", choices, reason=" ")
    assert "This field is required." in again
    assert choices_of(again) == choices
    assert not Resolution.objects.exists()


def test_write_off_above_the_limit_waits_for_a_second_person(
    seller: Seller, malee: Client, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 150_000, 0
    small = seller.reverse(seller.sale(), 150_001)
    tiny = seller.report(seller.shop.qr_code(), type="reversal", satang=100)
    text = send(malee, "write-off", choices_of(choose(malee, "write-off", [small, tiny])))
    assert "Done: 1. Waiting for a second person: 1." in text
    assert Approval.objects.waiting().get().subject_id == small.id
    assert (state_of(small)[1], state_of(tiny)[1]) == ("", "written_off")


def test_many_small_rows_cannot_pass_the_daily_limit(
    seller: Seller, malee: Client, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 150_000, 250
    reversals = [seller.report(seller.shop.qr_code(), type="reversal", satang=100) for _ in range(4)]
    text = send(malee, "write-off", choices_of(choose(malee, "write-off", reversals)))
    assert "Done: 2. Waiting for a second person: 2." in text
    assert Approval.objects.waiting().count() == 2
    assert [state_of(each)[1] for each in reversals] == ["written_off", "written_off", "", ""]


def test_more_rows_than_allowed_are_refused(
    seller: Seller, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_acts, "MAX_ROWS", 2)
    bank_transactions = [seller.unmatched() for _ in range(3)]
    refusal = "You chose more than 2 rows. Choose fewer: nothing changed."
    assert refusal in choose(malee, "send-back", bank_transactions)
    assert refusal in choose(malee, "send-back", bank_transactions[:1], select_across="1")
    assert refusal in send(malee, "send-back", [f"{each.id}:0" for each in bank_transactions])
    assert not Resolution.objects.exists()


def test_all_rows_of_a_filtered_list_can_be_chosen(seller: Seller, malee: Client) -> None:
    expected = [seller.late(), seller.late()]
    other = seller.unmatched()
    form = {"action": "send-back", "_selected_action": [expected[0].pk], "select_across": "1", "index": "0"}
    page = malee.post(f"{EXCEPTIONS_URL}?reason__exact=late", form).content.decode()
    assert {choice.partition(":")[0] for choice in choices_of(page)} == {each.id for each in expected}
    assert other.id not in page
    assert "_changelist_filters=reason__exact%3Dlate" in page


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_decide_each_row_once(seller: Seller) -> None:
    bank_transactions = [seller.late() for _ in range(4)]
    clients = [staff_client(name, *RESOLVES) for name in ("malee", "somsak")]
    chosen = [choices_of(choose(client, "accept", bank_transactions)) for client in clients]
    texts = run_concurrently(
        lambda: send(clients[0], "accept", chosen[0]), lambda: send(clients[1], "accept", chosen[1][::-1])
    )
    assert sum(text.count('class="state good"') for text in texts) == len(bank_transactions)
    assert Resolution.objects.count() == len(bank_transactions)
    assert not ReconciliationException.objects.exists()


def test_each_act_needs_its_permission(seller: Seller) -> None:
    bank_transaction = seller.late()
    support = staff_client("support", "view_banktransaction", "dismiss_exception")
    page = support.get(EXCEPTIONS_URL).content.decode()
    assert 'value="dismiss"' in page
    assert 'value="send-back"' not in page
    chosen = {"action": "accept", "_selected_action": [bank_transaction.pk], "index": "0"}
    assert support.post(EXCEPTIONS_URL, chosen).status_code == 403
    answer = support.post(f"{EXCEPTIONS_URL}do/accept/", act_form(row=[f"{bank_transaction.id}:0"]))
    assert answer.status_code == 403
    assert support.get(f"{EXCEPTIONS_URL}do/dismiss/").status_code == 403
    assert support.post(f"{EXCEPTIONS_URL}do/attach/", {}).status_code == 404
    assert not Resolution.objects.exists()


def test_sending_money_back_asks_who_it_is_before_any_row(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.unmatched()
    choices = choices_of(choose(malee, "send-back", [bank_transaction]))
    make_stale(malee)
    for page in (choose(malee, "send-back", [bank_transaction]), send(malee, "send-back", choices)):
        assert "Is it you?" in page
    assert not Resolution.objects.exists()


@pytest.mark.logs_errors
@pytest.mark.django_db(transaction=True)
def test_fault_of_one_row_does_not_hide_the_others(seller: Seller, malee: Client) -> None:
    first, second = seller.late(), seller.late()
    choices = choices_of(choose(malee, "accept", [first, second]))
    rows.run("SET lock_timeout = '100ms'", [])
    try:
        with held("payments_payment", str(first.payment_id)):
            text = send(malee, "accept", choices)
    finally:
        connection.close()
    refused, done = results_of(text)
    assert (refused, done) == (
        "Refused A fault prevented it. Look at it before you try again.",
        "Accept: done.",
    )
    assert (state_of(first)[1], state_of(second)[1]) == ("", "accepted")


def test_pages_with_personal_data_are_recorded(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.unmatched()
    choose(malee, "send-back", [bank_transaction])
    assert AuditRecord.objects.filter(act="viewed", object_id=bank_transaction.id).exists()
