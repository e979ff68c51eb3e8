"""Money that only an uploaded statement reports is credited, and cannot leave until it is confirmed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import DatabaseError, IntegrityError, connection, transaction

from audit_trail.acts import ActRefused
from banks import TransferResult
from core import clock, ids
from core.database import rows
from ledger import accounts, queries, services as ledger
from ledger.journal_types import JournalType
from reconciliation.exceptions import resolution_records, resolutions
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType
from refunds.destinations import Destination
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    NOTE,
    RESOLVES,
    decide,
    exception_url,
    get_page,
    reversal_of,
    staff_client,
)
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    detail,
    import_file,
    minutes_ago,
)
from tests.sqlstates import CHECK_VIOLATION, sqlstate_of
from tests.staff_acts import act_form
from tests.transfers.builders import Bank
from tests.transfers.conftest import served_by
from tests.withdrawals.builders import PATH, send_due_withdrawals, withdrawal_request, withdrawn

__all__ = ["served_by"]

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
MOST = 200_000_000
AMOUNT = 150_000


def balance_of(shop: Shop) -> dict[str, Any]:
    reported: dict[str, Any] = shop.get("/v1/balance").json()
    del reported["currency"]
    return reported


def uploaded(shop: Shop, satang: int = AMOUNT) -> BankTransaction:
    """Return a credit that only a file reports, uploaded by malee."""
    code = shop.qr_code(amount=satang)
    import_file(bot_file(credit_line(code, minutes_ago(0))))
    found: BankTransaction = BankTransaction.objects.get(payment_id=code["payment_id"])
    return found


def confirm(bank_transaction: BankTransaction, actor: str = "staff:somsri") -> Any:
    return decide("confirm", bank_transaction, actor=actor)


def test_unconfirmed_line_is_credited_and_cannot_be_withdrawn(shop: Shop) -> None:
    bank_transaction = uploaded(shop, MOST)
    assert shop.payment(bank_transaction.payment_id)["status"] == "succeeded"
    refused = shop.post(PATH, withdrawal_request(amount=MOST))
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
    assert balance_of(shop) == {"available": 0, "reserved": 0, "unconfirmed": MOST}


def test_refund_of_unconfirmed_money_needs_other_funds(shop: Shop, bank: SandboxBankClient) -> None:
    bank_transaction = uploaded(shop)
    asked = {"payment_id": bank_transaction.payment_id, "reason": "duplicate"}
    refused = shop.post("/v1/refunds", asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
    bank.notify(shop.qr_code())
    assert shop.post("/v1/refunds", asked).status_code == 200
    assert balance_of(shop) == {"available": 0, "reserved": AMOUNT, "unconfirmed": AMOUNT}


def test_money_is_available_after_a_second_person_confirms(shop: Shop) -> None:
    bank_transaction = uploaded(shop)
    resolution = confirm(bank_transaction)
    assert (resolution.actor, resolution.note) == ("staff:somsri", NOTE)
    assert resolution.type == ResolutionType.CONFIRMED
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    withdrawn(shop, amount=AMOUNT)
    with pytest.raises(resolution_records.AlreadyResolved, match="somsri"):
        confirm(bank_transaction, "staff:anong")


def test_uploader_cannot_confirm_own_statement(shop: Shop) -> None:
    bank_transaction = uploaded(shop)
    with pytest.raises(ActRefused, match="another person"):
        confirm(bank_transaction, "staff:malee")
    assert balance_of(shop)["unconfirmed"] == AMOUNT


def test_callback_confirms_an_unconfirmed_credit(shop: Shop, bank: SandboxBankClient) -> None:
    code, paid_at = shop.qr_code(), minutes_ago(0).replace(microsecond=0)
    import_file(bot_file(credit_line(code, paid_at)))
    notification = bank.notification(code, paid_at=paid_at)
    for _ in range(2):
        assert bank.post(notification).status_code == 200
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    assert BankTransaction.objects.get().is_confirmed


def test_credit_that_a_callback_reported_first_needs_no_confirmation(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code, paid_at = shop.qr_code(), minutes_ago(0).replace(microsecond=0)
    bank.notify(code, paid_at=paid_at)
    import_file(bot_file(credit_line(code, paid_at)))
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    with pytest.raises(ActRefused, match="the bank itself reported it"):
        confirm(BankTransaction.objects.get())


def test_reversed_unconfirmed_credit_leaves_nothing_to_confirm(shop: Shop, bank: SandboxBankClient) -> None:
    bank.notify(shop.qr_code())
    bank_transaction = uploaded(shop)
    assert bank.post(reversal_of(bank_transaction, transaction_id="T1")).status_code == 200
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    bank_transaction.refresh_from_db()
    assert (bank_transaction.later_bank_reference, bank_transaction.is_confirmed) == ("T1", False)
    confirm(bank_transaction)
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}


def test_unconfirmed_money_does_not_repay_merchant_debt(
    shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Bank]
) -> None:
    code = shop.qr_code()
    bank.notify(code)
    served_by(sends=[TransferResult("succeeded", "b-1")])
    withdrawn(shop, amount=AMOUNT)
    send_due_withdrawals()
    credit = BankTransaction.objects.get(payment_id=code["payment_id"])
    bank.post(reversal_of(credit))
    bank_transaction = uploaded(shop)
    ledger.roll_up_due(now=clock.now())
    assert balance_of(shop) == {"available": 0, "reserved": 0, "owed": AMOUNT, "unconfirmed": AMOUNT}
    confirm(bank_transaction)
    assert balance_of(shop) == {"available": 0, "reserved": 0}


def test_unconfirmed_money_in_suspense_cannot_be_sent_back(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    import_file(bot_file(detail()))
    bank_transaction = BankTransaction.objects.get()
    to = Destination("014", "4051234567", "MALEE")
    with pytest.raises(ActRefused, match="second person"):
        decide("send_back", bank_transaction, destination=to)
    with pytest.raises(ActRefused, match="second person"):
        decide("record_manual_return", bank_transaction, bank_reference="1")
    assert resolutions.allowed_types(bank_transaction) == {
        ResolutionType.ATTACHED,
        ResolutionType.ACQUIRER,
        ResolutionType.CONFIRMED,
    }
    confirm(bank_transaction)
    bank_transaction.refresh_from_db()
    assert ResolutionType.SENT_BACK in resolutions.allowed_types(bank_transaction)
    decide("send_back", bank_transaction, destination=to)


def test_attached_unconfirmed_money_stays_unconfirmed(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    import_file(bot_file(detail()))
    bank_transaction, payment_id = BankTransaction.objects.get(), shop.qr_code()["payment_id"]
    decide("attach", bank_transaction.id, payment_id=payment_id)
    assert balance_of(shop) == {"available": 0, "reserved": 0, "unconfirmed": AMOUNT}
    confirm(bank_transaction)
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}


def test_lines_credited_in_a_batch_are_unconfirmed(shop: Shop) -> None:
    codes = [shop.qr_code() for _ in range(3)]
    import_file(bot_file(*(credit_line(code, minutes_ago(0)) for code in codes)))
    assert balance_of(shop)["unconfirmed"] == 3 * AMOUNT
    for bank_transaction in BankTransaction.objects.all():
        confirm(bank_transaction)
    assert balance_of(shop) == {"available": 3 * AMOUNT, "reserved": 0}


def test_console_shows_unconfirmed_money_and_a_second_person_confirms(shop: Shop) -> None:
    bank_transaction = uploaded(shop)
    uploader = staff_client("malee", "view_banktransaction", "confirm_banktransaction")
    reader = staff_client("anong", *RESOLVES)
    second = staff_client("somsri", "view_banktransaction", "confirm_banktransaction")
    listed = get_page(second, "/admin/reconciliation/banktransaction/", is_confirmed__exact=0)
    assert bank_transaction.id in listed
    url = f"{EXCEPTIONS_URL}{quote(bank_transaction.id)}/do/confirm/"
    assert "only a statement reports it, uploaded by malee" in get_page(
        second, exception_url(bank_transaction.id)
    )
    assert "/do/confirm/" not in get_page(reader, exception_url(bank_transaction.id))
    assert reader.post(url, act_form(reason=NOTE)).status_code == 403
    refused = uploader.post(url, act_form(reason=NOTE), follow=True).content.decode()
    assert "You uploaded this statement" in refused
    done = second.post(url, act_form(reason=NOTE), follow=True).content.decode()
    assert "Confirm this transaction: done." in done
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    found = Resolution.objects.get()
    assert (found.actor, found.note, found.subject_id) == ("staff:somsri", NOTE, bank_transaction.id)


def test_timeline_shows_unconfirmed_money_and_the_confirming_staff(shop: Shop) -> None:
    bank_transaction = uploaded(shop)
    path = f"/v1/payments/{bank_transaction.payment_id}/timeline"
    entries = shop.get(path).json()["timeline"]
    assert any("the money cannot be paid out" in entry["summary"] for entry in entries)
    confirm(bank_transaction)
    entries = shop.get(path).json()["timeline"]
    assert [entry["actor"] for entry in entries if entry["type"] == "staff.confirmed"] == ["staff"]
    assert not any("the money cannot be paid out" in entry["summary"] for entry in entries)


def pay_out(bank_transaction: BankTransaction) -> None:
    merchant = bank_transaction.merchant_id
    lines = {accounts.unconfirmed(merchant): -AMOUNT, accounts.reserved(merchant): AMOUNT}
    ledger.roll_up_due(now=clock.now())
    queries.post(JournalType.WITHDRAWAL_RESERVED, {ids.new("wd_", clock.now()): lines}, clock.now())


def post_confirmation(bank_transaction: BankTransaction) -> None:
    names = {
        "merchant_id": bank_transaction.merchant_id,
        "subject_id": bank_transaction.id,
        "source_id": bank_transaction.payment_id,
    }
    ledger.confirm(**names, amount=AMOUNT, now=clock.now())


def say_it_is_confirmed(bank_transaction: BankTransaction) -> None:
    BankTransaction.objects.filter(pk=bank_transaction.id).update(is_confirmed=True)


def confirm_as_uploader(bank_transaction: BankTransaction) -> None:
    Resolution.objects.create(
        subject_id=bank_transaction.id,
        type=ResolutionType.CONFIRMED,
        actor="staff:malee",
        note=NOTE,
        created_at=clock.now(),
    )


def confirm_without_moving_the_money(bank_transaction: BankTransaction) -> None:
    Resolution.objects.create(
        subject_id=bank_transaction.id,
        type=ResolutionType.CONFIRMED,
        actor="staff:somsri",
        note=NOTE,
        created_at=clock.now(),
    )
    say_it_is_confirmed(bank_transaction)


def insert_as_confirmed(bank_transaction: BankTransaction) -> None:
    rows.run(
        """INSERT INTO reconciliation_banktransaction SELECT (jsonb_populate_record(old,
           '{"id": "btx_x", "bank_reference": "x", "is_confirmed": true, "payment_id": null,
             "match_result": ""}')).* FROM reconciliation_banktransaction AS old WHERE id = %s""",
        [bank_transaction.id],
    )


@pytest.mark.parametrize(
    "attack",
    [
        pay_out, post_confirmation, say_it_is_confirmed, confirm_as_uploader,
        confirm_without_moving_the_money, insert_as_confirmed,
    ],
)  # fmt: skip
def test_database_refuses_to_send_unconfirmed_money(
    shop: Shop, attack: Callable[[BankTransaction], None]
) -> None:
    bank_transaction = uploaded(shop)
    with pytest.raises(DatabaseError) as refused, transaction.atomic():
        attack(bank_transaction)
        check_constraints()
    assert sqlstate_of(refused.value) == CHECK_VIOLATION
    bank_transaction.refresh_from_db()
    assert not bank_transaction.is_confirmed


def test_database_refuses_a_return_of_unconfirmed_money(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    import_file(bot_file(detail()))
    bank_transaction = BankTransaction.objects.get()
    with pytest.raises(IntegrityError, match="unconfirmed"), transaction.atomic():
        bank_transaction.returns.create(
            id=ids.new("rtn_", clock.now()),
            amount=bank_transaction.amount,
            route="bank:sandbox",
            created_at=clock.now(),
        )
    assert bank_transaction.resolution_state == ResolutionState.OPEN


def check_constraints() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
