"""Money that only an uploaded statement reports is credited, and cannot leave until it is confirmed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from banks import Word
from core import clock, ids, rows
from receipts import acts
from receipts.models import Act, Deed, Receipt, Resolution
from tests.conftest import BankCaller, Shop
from tests.receipts.cast import WHY, decide, reversal_of
from tests.receipts.staff import LIST, page_of, read, staff
from tests.receipts.statements.cast import bot, detail, line_of, load, minutes_ago
from tests.transfers.cast import Bank
from tests.transfers.conftest import served_by
from tests.withdrawals.cast import PATH, withdrawal_request, withdrawn, work
from transactions import accounts, ledger, postings
from transactions.models import Fact

__all__ = ["served_by"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
MOST = 200_000_000
AMOUNT = 150_000


def balance_of(shop: Shop) -> dict[str, Any]:
    told: dict[str, Any] = shop.get("/v1/balance").json()
    del told["currency"]
    return told


def uploaded(shop: Shop, satang: int = AMOUNT) -> Receipt:
    """A credit that only a file reports, which malee uploaded."""
    code = shop.qr_code(amount=satang)
    load(bot(line_of(code, minutes_ago(0))))
    found: Receipt = Receipt.objects.get(payment_id=code["payment_id"])
    return found


def confirm(receipt: Receipt, by: str = "somsri") -> Act:
    return acts.confirm(receipt.id, by=by, why=WHY, now=clock.now())


def test_hand_written_line_is_credited_and_cannot_be_withdrawn(shop: Shop) -> None:
    receipt = uploaded(shop, MOST)
    assert shop.payment(receipt.payment_id)["status"] == "succeeded"
    refused = shop.post(PATH, withdrawal_request(amount=MOST))
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
    assert balance_of(shop) == {"available": 0, "reserved": 0, "unconfirmed": MOST}


def test_unconfirmed_money_cannot_be_refunded_unless_other_funds_cover_it(
    shop: Shop, bank: BankCaller
) -> None:
    receipt = uploaded(shop)
    asked = {"payment_id": receipt.payment_id, "reason": "duplicate"}
    refused = shop.post("/v1/refunds", asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
    bank.tell(shop.qr_code())
    assert shop.post("/v1/refunds", asked).status_code == 200
    assert balance_of(shop) == {"available": 0, "reserved": AMOUNT, "unconfirmed": AMOUNT}


def test_second_person_confirms_and_money_is_available(shop: Shop) -> None:
    receipt = uploaded(shop)
    act = confirm(receipt)
    assert (act.by, act.why, act.deed) == ("somsri", WHY, Deed.CONFIRMED)
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    withdrawn(shop, amount=AMOUNT)
    with pytest.raises(acts.AlreadyDone, match="somsri"):
        confirm(receipt, "anong")


def test_uploader_cannot_confirm_own_statement(shop: Shop) -> None:
    receipt = uploaded(shop)
    with pytest.raises(acts.NotPossible, match="somebody else"):
        confirm(receipt, "malee")
    assert balance_of(shop)["unconfirmed"] == AMOUNT


def test_callback_of_same_money_confirms_it(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), minutes_ago(0).replace(microsecond=0)
    load(bot(line_of(code, paid_at)))
    notice = bank.notice(code, paid_at=paid_at)
    for _ in range(2):
        assert bank.post(notice).status_code == 200
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    assert Receipt.objects.get().is_confirmed


def test_credit_that_a_callback_reported_first_needs_no_confirmation(shop: Shop, bank: BankCaller) -> None:
    code, paid_at = shop.qr_code(), minutes_ago(0).replace(microsecond=0)
    bank.tell(code, paid_at=paid_at)
    load(bot(line_of(code, paid_at)))
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    with pytest.raises(acts.NotPossible, match="the bank itself reported it"):
        confirm(Receipt.objects.get())


def test_reversed_unconfirmed_credit_leaves_nothing_to_confirm(shop: Shop, bank: BankCaller) -> None:
    bank.tell(shop.qr_code())
    receipt = uploaded(shop)
    assert bank.post(reversal_of(receipt, transaction_id="T1")).status_code == 200
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    receipt.refresh_from_db()
    assert (receipt.also_known_as, receipt.is_confirmed) == ("T1", False)
    confirm(receipt)
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}


def test_unconfirmed_money_does_not_pay_what_the_merchant_owes(
    shop: Shop, bank: BankCaller, served_by: Callable[..., Bank]
) -> None:
    code = shop.qr_code()
    bank.tell(code)
    served_by(sends=[Word("succeeded", "b-1")])
    withdrawn(shop, amount=AMOUNT)
    work()
    credit = Receipt.objects.get(payment_id=code["payment_id"])
    bank.post(reversal_of(credit))
    receipt = uploaded(shop)
    ledger.fold_due(now=clock.now())
    assert balance_of(shop) == {"available": 0, "reserved": 0, "owed": AMOUNT, "unconfirmed": AMOUNT}
    confirm(receipt)
    assert balance_of(shop) == {"available": 0, "reserved": 0}


def test_money_in_suspense_that_only_a_file_reports_cannot_be_sent_back(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    load(bot(detail()))
    receipt = Receipt.objects.get()
    to = acts.Destination("014", "4051234567", "MALEE")
    with pytest.raises(acts.NotPossible, match="second person"):
        decide("send_back", receipt, destination=to)
    with pytest.raises(acts.NotPossible, match="second person"):
        decide("send_back_by_hand", receipt, bank_reference="1")
    assert acts.possible(receipt) == {Deed.ATTACHED, Deed.CONFIRMED}
    confirm(receipt)
    receipt.refresh_from_db()
    assert Deed.SENT_BACK in acts.possible(receipt)
    decide("send_back", receipt, destination=to)


def test_attached_unconfirmed_money_stays_unconfirmed(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    load(bot(detail()))
    receipt, payment_id = Receipt.objects.get(), shop.qr_code()["payment_id"]
    acts.attach(receipt.id, payment_id=payment_id, by="malee", why=WHY, now=clock.now())
    assert balance_of(shop) == {"available": 0, "reserved": 0, "unconfirmed": AMOUNT}
    confirm(receipt)
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}


def test_many_lines_credited_together_are_unconfirmed(shop: Shop) -> None:
    codes = [shop.qr_code() for _ in range(3)]
    load(bot(*(line_of(code, minutes_ago(0)) for code in codes)))
    assert balance_of(shop)["unconfirmed"] == 3 * AMOUNT
    for receipt in Receipt.objects.all():
        confirm(receipt)
    assert balance_of(shop) == {"available": 3 * AMOUNT, "reserved": 0}


def test_console_shows_unconfirmed_money_and_lets_a_second_person_confirm(shop: Shop) -> None:
    receipt = uploaded(shop)
    uploader = staff("malee", "view_receipt", "confirm_receipt")
    reader = staff("anong", "view_receipt", "resolve_receipt")
    second = staff("somsri", "view_receipt", "confirm_receipt")
    listed = read(second, "/admin/receipts/receipt/", is_confirmed__exact=0)
    assert receipt.id in listed
    act = f"{LIST}{receipt.id}/act/confirm/"
    assert "only a statement reports it, which malee uploaded" in read(second, page_of(receipt.id))
    assert "Confirm that the bank has it" not in read(reader, page_of(receipt.id))
    assert reader.post(act, {"why": WHY}).status_code == 403
    refused = uploader.post(act, {"why": WHY}, follow=True).content.decode()
    assert "You uploaded this statement" in refused
    done = second.post(act, {"why": WHY}, follow=True).content.decode()
    assert "Confirmed" in done
    assert balance_of(shop) == {"available": AMOUNT, "reserved": 0}
    found = Act.objects.get()
    assert (found.by, found.why, found.subject_id) == ("somsri", WHY, receipt.id)


def test_timeline_tells_that_money_is_unconfirmed_and_who_confirmed_it(shop: Shop) -> None:
    receipt = uploaded(shop)
    path = f"/v1/payments/{receipt.payment_id}/timeline"
    entries = shop.get(path).json()["timeline"]
    assert any("the money cannot leave" in entry["summary"] for entry in entries)
    confirm(receipt)
    entries = shop.get(path).json()["timeline"]
    assert [entry["actor"] for entry in entries if entry["type"] == "staff.confirmed"] == ["staff"]
    assert not any("the money cannot leave" in entry["summary"] for entry in entries)


def pay_out(receipt: Receipt) -> None:
    merchant = receipt.merchant_id
    lines = {accounts.unconfirmed(merchant): -AMOUNT, accounts.reserved(merchant): AMOUNT}
    ledger.fold_due(now=clock.now())
    postings.post(Fact.WITHDRAWAL_RESERVED, ids.new("wd_", clock.now()), lines, clock.now())


def post_confirmation(receipt: Receipt) -> None:
    ledger.confirm(merchant_id=receipt.merchant_id, subject_id=receipt.id, amount=AMOUNT, at=clock.now())


def say_it_is_confirmed(receipt: Receipt) -> None:
    Receipt.objects.filter(pk=receipt.id).update(is_confirmed=True)


def confirm_as_uploader(receipt: Receipt) -> None:
    Act.objects.create(subject_id=receipt.id, deed=Deed.CONFIRMED, by="malee", why=WHY, at=clock.now())


def confirm_without_moving_the_money(receipt: Receipt) -> None:
    Act.objects.create(subject_id=receipt.id, deed=Deed.CONFIRMED, by="somsri", why=WHY, at=clock.now())
    say_it_is_confirmed(receipt)


def insert_as_confirmed(receipt: Receipt) -> None:
    rows.run(
        """INSERT INTO receipts_receipt SELECT (jsonb_populate_record(old,
           '{"id": "rcp_x", "bank_transaction_id": "x", "is_confirmed": true, "payment_id": null,
             "outcome": ""}')).* FROM receipts_receipt AS old WHERE id = %s""",
        [receipt.id],
    )


@pytest.mark.parametrize(
    "attack",
    [
        pay_out, post_confirmation, say_it_is_confirmed, confirm_as_uploader,
        confirm_without_moving_the_money, insert_as_confirmed,
    ],
)  # fmt: skip
def test_database_refuses_to_let_unconfirmed_money_leave(
    shop: Shop, attack: Callable[[Receipt], None]
) -> None:
    receipt = uploaded(shop)
    with pytest.raises(DatabaseError), transaction.atomic():
        attack(receipt)
        check_constraints()
    receipt.refresh_from_db()
    assert not receipt.is_confirmed


def test_database_refuses_a_return_of_unconfirmed_money(shop: Shop) -> None:
    shop.merchant.biller_id = "099400016550100"
    shop.merchant.save()
    load(bot(detail()))
    receipt = Receipt.objects.get()
    with pytest.raises(IntegrityError, match="unconfirmed"), transaction.atomic():
        receipt.returns.create(
            id=ids.new("rtn_", clock.now()),
            amount=receipt.amount,
            route="bank:sandbox",
            created_at=clock.now(),
        )
    assert receipt.resolution == Resolution.OPEN


def check_constraints() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
