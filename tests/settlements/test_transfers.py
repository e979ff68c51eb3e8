"""Transfers of an acquirer: what they pay becomes available, and what is not as expected is asked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from audit_trail.acts import ActRefused
from banks import ChargeResult, SettledItem, TransferResult
from banks.base import ResultStatus
from core import clock
from core.failures import PROCESSING_ERROR
from ledger import queries, services as ledger
from ledger.models import Journal
from payments import cards
from payments.models import CardCharge, Payment
from reconciliation.exceptions import acquirer_transfers
from reconciliation.models import BankTransaction
from settlements import failed_transfers, questions, services
from settlements.models import AcquirerTransfer, OpenQuestion, SettledItem as SettledItemRow, Settlement
from tests.audit import differences
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.refunds.builders import send_due_refunds
from tests.settlements.conftest import AMOUNT, COST, COST_VAT, DAY, FEE, NET, VAT, ReportingAcquirer, item_of
from tests.transfers.builders import Serving
from tests.transfers.conftest import served_by

__all__ = ["served_by"]  # a fixture
pytestmark = pytest.mark.django_db


def balance_of(*codes: str) -> list[int]:
    """Satang on these accounts."""
    found = queries.read_balances(codes, None)
    return [found.get(code, 0) for code in codes]


def asked() -> list[tuple[str, int]]:
    """The open questions: kind and difference."""
    found = OpenQuestion.objects.filter(closed_at=None).order_by("kind")
    return [(each.kind, each.difference) for each in found]


def settlements_of(shop: Shop) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get("/v1/settlements").json()["settlements"]
    return found


ON_ACCOUNTS = ("acquirer:sandbox", "fees:sandbox", "fee_vat:sandbox")


def test_transfer_that_arrived_makes_the_money_available(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charges = [acquirer.charge(shop.merchant) for _ in range(2)]
    assert balance_of(*ON_ACCOUNTS) == [-2 * AMOUNT, 2 * FEE, 2 * VAT]
    acquirer.transfer(*map(item_of, charges))
    acquirer.read()
    assert ledger.balance(shop.merchant.id) == ledger.Balance(2 * NET, 0, 0)
    assert balance_of(*ON_ACCOUNTS) == [0, 0, 0]
    assert balance_of("bank:sandbox", "write_offs:sandbox") == [COST + COST_VAT - 2 * NET, -COST - COST_VAT]
    assert asked() == []
    assert not differences()


def test_transfer_on_its_way_changes_no_balance(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    transfer = acquirer.transfer(item_of(charge), state="sent")
    acquirer.read()
    assert ledger.balance(shop.merchant.id).available == 0
    (settlement,) = Settlement.objects.all()
    assert settlement.status_at(clock.now()) == "expected"
    acquirer.change(transfer, state="paid", paid_at=clock.now())
    acquirer.read()
    assert ledger.balance(shop.merchant.id).available == NET
    assert Settlement.objects.get().status_at(clock.now()) == "arrived"
    acquirer.read()
    assert ledger.balance(shop.merchant.id).available == NET
    assert not differences()


def test_each_merchant_has_its_part(shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer) -> None:
    charges = [acquirer.charge(each.merchant) for each in (shop, shop, other_shop)]
    acquirer.transfer(*map(item_of, charges))
    acquirer.read()
    parts = {each.merchant_id: (each.payment_count, each.net_amount) for each in Settlement.objects.all()}
    assert parts == {shop.merchant.id: (2, 2 * NET), other_shop.merchant.id: (1, NET)}


def test_fee_that_was_not_known_comes_with_the_transfer(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant, fee=None)
    acquirer.transfer(item_of(charge))
    acquirer.read()
    payment = shop.payment(charge.pk)
    assert (payment["fee"], payment["fee_vat"], payment["net"]) == (FEE, VAT, NET)
    assert ledger.balance(shop.merchant.id).available == NET
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
    assert not differences()


def name_fee(charge: CardCharge) -> None:
    """The acquirer says what it keeps."""
    result = ChargeResult("succeeded", charge.charge_id, paid_at=charge.paid_at, fee=FEE, fee_vat=VAT)
    with transaction.atomic():
        cards.complete(charge.pk, result, now=clock.now())


@pytest.mark.parametrize("state", ["sent", "paid"])
def test_charge_whose_fee_nobody_knows_is_settled_when_it_is_named(
    shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer, state: Any
) -> None:
    unknown, known = acquirer.charge(shop.merchant, fee=None), acquirer.charge(shop.merchant)
    other = acquirer.charge(other_shop.merchant)
    item = replace(item_of(unknown), fee=None, fee_vat=None)
    transfer = acquirer.transfer(item, item_of(known), item_of(other), state=state)
    acquirer.read()
    assert (asked(), differences()) == ([], [])
    name_fee(unknown)
    assert not differences()
    acquirer.change(transfer, state="paid", paid_at=clock.now())
    acquirer.read()
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
    assert ledger.balance(shop.merchant.id) == ledger.Balance(2 * NET, 0, 0)
    assert sum(each.payment_count for each in Settlement.objects.filter(merchant=shop.merchant)) == 2
    assert not differences()


@pytest.mark.parametrize("outcome", ["succeeded", "declined"])
def test_item_of_a_pending_charge_waits_for_its_result(
    shop: Shop, acquirer: ReportingAcquirer, outcome: Any
) -> None:
    now = clock.now() - 8 * DAY
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=AMOUNT, now=now)
    cards.store(made)
    with transaction.atomic():
        cards.complete(made.payment.id, ChargeResult("pending", "chrg_p"), now=now)
    pending = CardCharge.objects.get(pk=made.payment.pk)
    acquirer.transfer(item_of(pending), item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    assert (asked(), balance_of(*ON_ACCOUNTS), differences()) == ([], [NET, 0, 0], [])
    result = ChargeResult(outcome, "chrg_p", "card_declined" if outcome == "declined" else None, paid_at=now)
    with transaction.atomic():
        cards.complete(pending.pk, replace(result, fee=FEE, fee_vat=VAT), now=clock.now())
    assert not differences()
    acquirer.read()
    if outcome == "succeeded":
        assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
        assert ledger.balance(shop.merchant.id) == ledger.Balance(2 * NET, 0, 0)
    else:
        assert (asked(), balance_of(*ON_ACCOUNTS)) == ([("unknown_item", NET)], [NET, 0, 0])
    assert not differences()


def test_item_that_waits_is_not_missing_and_no_other_gets_a_settlement(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    unknown = acquirer.charge(shop.merchant, fee=None, ago=12 * DAY)
    acquirer.transfer(replace(item_of(unknown), fee=None, fee_vat=None), ago=4 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    assert asked() == []
    items = SettledItemRow.objects.filter(settlement__isnull=False)
    for change in ({"settlement": None}, {"awaits_result": True}, {"net_amount": 1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            items.update(**change)


def test_item_of_a_failed_transfer_waits_no_longer(shop: Shop, acquirer: ReportingAcquirer) -> None:
    unknown = acquirer.charge(shop.merchant, fee=None)
    item = replace(item_of(unknown), fee=None, fee_vat=None)
    transfer = acquirer.transfer(item, state="sent", ago=2 * DAY)
    acquirer.read()
    acquirer.change(transfer, state="failed")
    acquirer.read()
    name_fee(unknown)
    acquirer.transfer(item)
    acquirer.read()
    assert (asked(), ledger.balance(shop.merchant.id).available) == ([], NET)
    assert not differences()


def test_fee_that_changed_is_asked_and_stays_on_the_account(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(charge, fee=FEE + 100))
    acquirer.read()
    assert asked() == [("fee_differs", -100)]
    assert balance_of(*ON_ACCOUNTS) == [-100, 0, 0]
    assert ledger.balance(shop.merchant.id).available == NET
    assert Settlement.objects.get().status_at(clock.now()) == "differs"
    assert not differences()


def test_vat_that_was_rounded_up_is_asked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant), vat=VAT + 1))
    acquirer.read()
    assert asked() == [("fee_differs", -1)]
    assert not differences()


def test_transfer_that_is_short_by_a_satang_is_asked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=1)
    acquirer.read()
    assert asked() == [("amount_differs", -1)]
    assert balance_of(*ON_ACCOUNTS) == [-1, 0, 0]
    assert not differences()


def test_charge_that_a_transfer_left_out_is_asked_when_a_later_one_is_paid(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    left_out, paid = acquirer.charge(shop.merchant, ago=10 * DAY), acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(paid))
    acquirer.read()
    assert asked() == [("missing", -NET)]
    assert OpenQuestion.objects.get().payment_id == left_out.pk
    assert not differences()


def test_charge_of_the_same_day_is_not_missing(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.charge(shop.merchant, ago=8.5 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    assert asked() == []


def test_transfer_twice_is_asked_and_credits_once(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(charge))
    acquirer.transfer(item_of(charge))
    acquirer.read()
    assert asked() == [("paid_twice", NET)]
    assert ledger.balance(shop.merchant.id).available == NET
    assert balance_of(*ON_ACCOUNTS) == [NET, 0, 0]
    assert not differences()


def test_charge_that_one_transfer_lists_twice_is_asked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(charge), item_of(charge))
    acquirer.read()
    assert asked() == [("paid_twice", NET)]
    assert not differences()


@pytest.mark.parametrize("is_paid", [False, True])
def test_each_repeat_of_a_charge_has_its_question(
    shop: Shop, acquirer: ReportingAcquirer, is_paid: bool
) -> None:
    charge = acquirer.charge(shop.merchant)
    if is_paid:
        acquirer.transfer(item_of(charge), ago=2 * DAY)
    acquirer.transfer(*[item_of(charge)] * (2 if is_paid else 3))
    acquirer.read()
    assert asked() == [("paid_twice", NET)] * 2
    assert balance_of(*ON_ACCOUNTS) == [2 * NET, 0, 0]
    assert not differences()


@pytest.mark.parametrize("kind", ["charge", "refund", "adjustment"])
def test_item_that_we_do_not_know_is_asked(shop: Shop, acquirer: ReportingAcquirer, kind: Any) -> None:
    other = SettledItem(kind, "chrg_other", "", 500, 0, 0, 500)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), other)
    acquirer.read()
    assert asked() == [("adjustment" if kind == "adjustment" else "unknown_item", 500)]
    assert balance_of(*ON_ACCOUNTS) == [500, 0, 0]
    assert not differences()


def test_transfer_that_does_not_arrive_is_asked_until_it_does(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    transfer = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent", ago=5 * DAY)
    acquirer.read()
    assert asked() == [("late", COST + COST_VAT - NET)]
    assert Settlement.objects.get().status_at(clock.now()) == "late"
    acquirer.change(transfer, state="paid", paid_at=clock.now())
    acquirer.read()
    assert asked() == []


def test_transfer_that_changes_is_asked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    transfer = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent")
    acquirer.read()
    acquirer.change(transfer, amount=transfer.amount - 7, net=transfer.net - 7)
    acquirer.read()
    assert asked() == [("changed", -7)]


def test_next_transfer_pays_what_a_failed_one_did_not(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    transfer = acquirer.transfer(item_of(charge), state="sent", ago=2 * DAY)
    acquirer.read()
    acquirer.change(transfer, state="failed")
    acquirer.read()
    assert shop.payment(charge.pk)["settlement_id"] is None
    acquirer.transfer(item_of(charge))
    acquirer.read()
    assert (asked(), ledger.balance(shop.merchant.id).available) == ([], NET)
    assert not differences()


def test_transfer_that_had_failed_before_it_was_read_is_not_asked(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    failed = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="failed")
    acquirer.change(failed, items=())
    acquirer.read()
    assert (asked(), AcquirerTransfer.objects.get().state) == ([], "failed")
    assert not differences()


def test_nothing_is_asked_of_an_acquirer_that_owes_nothing(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.read()
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    acquirer.read()
    assert len(acquirer.asked) == 1


def test_transfer_of_adjustments_alone_is_read_within_a_day(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    later = clock.now() + timedelta(hours=1)
    dispute = SettledItem("adjustment", "dspt_1", "", 5_000, 0, 0, 5_000, "dispute.won.credit")
    acquirer.transfer(dispute, ago=-timedelta(minutes=30))
    services.read("sandbox", now=later)
    assert asked() == []
    services.read("sandbox", now=later + DAY)
    assert asked() == [("adjustment", 5_000)]
    services.read("sandbox", now=later + DAY)
    assert len(acquirer.asked) == 2
    assert not differences()


def test_fee_that_never_comes_is_asked_for_less_and_less_and_then_a_question(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    charge = acquirer.charge(shop.merchant, fee=None, ago=20 * DAY)
    at, asks = charge.completed_at, 0
    assert at is not None
    answer = ChargeResult("succeeded", charge.charge_id, paid_at=charge.paid_at)
    while at < clock.now():
        CardCharge.objects.update(inquiries=asks)
        with transaction.atomic():
            cards.complete(charge.pk, answer, now=at)
        at, asks = CardCharge.objects.get().due_at, asks + 1
    assert 20 < asks < 60
    acquirer.read()
    acquirer.read()
    assert asked() == [("fee_unknown", 0)]
    questions.close(OpenQuestion.objects.get().pk, note="They say it now.", is_booked=False, now=clock.now())
    assert CardCharge.objects.get().due_at <= clock.now()


def test_question_about_an_unknown_fee_ends_when_it_is_named(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant, fee=None, ago=20 * DAY)
    acquirer.read()
    name_fee(charge)
    acquirer.read()
    assert asked() == []
    assert OpenQuestion.objects.get().note == "The acquirer has named it."


def test_merchant_sees_its_settlements_and_their_payments(
    shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer
) -> None:
    charges = [acquirer.charge(shop.merchant) for _ in range(2)]
    acquirer.charge(other_shop.merchant)
    acquirer.transfer(*map(item_of, charges))
    acquirer.read()
    (shown,) = settlements_of(shop)
    assert (shown["status"], shown["payments"]) == ("arrived", 2)
    assert [shown[name] for name in ("gross", "fee", "fee_vat", "net")] == [
        2 * AMOUNT,
        2 * FEE,
        2 * VAT,
        2 * NET,
    ]
    assert shop.get(f"/Thai/v1/settlements/{shown['settlement_id']}").json() == shown
    assert settlements_of(other_shop) == []
    assert other_shop.get(f"/v1/settlements/{shown['settlement_id']}").status_code == 404
    listed = shop.get(f"/v1/payments?settlement_id={shown['settlement_id']}").json()
    assert {each["payment_id"] for each in listed["payments"]} == {each.pk for each in charges}
    (event,) = shop.get("/v1/events?event=settlement.arrived").json()["events"]
    assert event["data"] == shown


def test_difference_is_booked_as_a_loss_by_a_person(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant), fee=FEE + 100))
    acquirer.read()
    question = OpenQuestion.objects.get()
    questions.close(question.pk, note="Their new price.", is_booked=True, now=clock.now())
    assert balance_of(*ON_ACCOUNTS, "write_offs:sandbox") == [0, 0, 0, -COST - COST_VAT - 100]
    with pytest.raises(ValidationError, match="closed it before"):
        questions.close(question.pk, note="Again.", is_booked=True, now=clock.now())
    for change in ({"note": "Again."}, {"is_booked": False}):
        with pytest.raises(IntegrityError, match="keeps its answer"), transaction.atomic():
            OpenQuestion.objects.update(**change)
    assert not differences()


def test_money_that_is_still_expected_is_not_booked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent", ago=5 * DAY)
    acquirer.read()
    with pytest.raises(ValidationError, match="still expected"):
        questions.close(OpenQuestion.objects.get().pk, note="x", is_booked=True, now=clock.now())


def test_refund_of_an_unsettled_payment_leaves_the_rest_to_its_transfer(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    charge = acquirer.charge(shop.merchant)
    refund = {"payment_id": charge.pk, "amount": 50_000}
    assert shop.post("/v1/refunds", refund).status_code == 200
    acquirer.transfer(item_of(charge))
    acquirer.read()
    assert ledger.balance(shop.merchant.id) == ledger.Balance(NET - 50_000, 50_000, 0)
    assert not differences()


def refunded(
    shop: Shop,
    acquirer: ReportingAcquirer,
    served_by: Serving,
    status: ResultStatus = "succeeded",
    ago: timedelta = 8 * DAY,
) -> tuple[SettledItem, SettledItem]:
    """A card payment and its refund of 500.00 THB, as the acquirer lists them."""
    charge = acquirer.charge(shop.merchant, ago=ago)
    served_by(sends=[TransferResult(status, "rfnd_1", PROCESSING_ERROR if status == "failed" else "")])
    made = shop.post("/v1/refunds", {"payment_id": charge.pk, "amount": 50_000}).json()
    send_due_refunds()
    return item_of(charge), SettledItem("refund", "rfnd_1", made["refund_id"], -50_000, 0, 0, -50_000)


def test_refund_is_taken_off_the_transfer(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    acquirer.transfer(*refunded(shop, acquirer, served_by))
    acquirer.read()
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
    assert not differences()


def test_refund_of_a_charge_that_is_too_new_to_be_paid_makes_no_other_missing(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    paid = acquirer.charge(shop.merchant)
    acquirer.charge(shop.merchant, ago=4 * DAY)
    _, taken_off = refunded(shop, acquirer, served_by, ago=2 * DAY)
    acquirer.transfer(item_of(paid), taken_off)
    acquirer.read()
    assert asked() == []
    assert not differences()


def test_refund_of_another_amount_than_ours_is_asked(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    paid, taken_off = refunded(shop, acquirer, served_by)
    acquirer.transfer(paid, replace(taken_off, fee=None, fee_vat=None, net=-48_000))
    acquirer.read()
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([("fee_differs", 2_000)], [2_000, 0, 0])
    assert not differences()


def test_refund_that_is_taken_off_twice_is_asked(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    paid, taken_off = refunded(shop, acquirer, served_by)
    acquirer.transfer(paid, taken_off)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), taken_off)
    acquirer.read()
    assert asked() == [("paid_twice", -50_000)]
    assert not differences()


def test_refund_that_one_transfer_lists_twice_is_asked(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    paid, taken_off = refunded(shop, acquirer, served_by)
    acquirer.transfer(paid, item_of(acquirer.charge(shop.merchant)), taken_off, taken_off)
    acquirer.read()
    assert asked() == [("paid_twice", -50_000)]
    assert not differences()


def test_refund_that_failed_here_is_an_unknown_item(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving
) -> None:
    acquirer.transfer(*refunded(shop, acquirer, served_by, "failed"))
    acquirer.read()
    assert asked() == [("unknown_item", -50_000)]
    assert ledger.balance(shop.merchant.id) == ledger.Balance(NET, 0, 0)
    assert not differences()


@pytest.mark.parametrize(("status", "left"), [("succeeded", []), ("failed", [("unknown_item", -50_000)])])
def test_refund_may_be_taken_off_before_we_know_its_result(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving, status: ResultStatus, left: Any
) -> None:
    charge = acquirer.charge(shop.merchant)
    made = shop.post("/v1/refunds", {"payment_id": charge.pk, "amount": 50_000}).json()
    acquirer.transfer(
        item_of(charge), SettledItem("refund", "rfnd_1", made["refund_id"], -50_000, 0, 0, -50_000)
    )
    acquirer.read()
    assert (asked(), differences()) == ([], [])
    served_by(sends=[TransferResult(status, "rfnd_1", PROCESSING_ERROR if status == "failed" else "")])
    send_due_refunds()
    assert not differences()
    for _ in range(2):
        acquirer.read()
        assert (asked(), differences()) == (left, [])
    assert not SettledItemRow.objects.filter(awaits_result=True).exists()


@pytest.mark.parametrize("later", [False, True])
def test_fee_of_a_void_goes_back_to_the_merchant(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving, later: bool
) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.charge(shop.merchant, ago=9 * DAY)
    served_by(sends=[TransferResult("succeeded", "rfnd_1")])
    made = shop.post("/v1/refunds", {"payment_id": charge.pk}).json()
    send_due_refunds()
    other = item_of(CardCharge.objects.exclude(pk=charge.pk).get())
    void = SettledItem("refund", "rfnd_1", made["refund_id"], -AMOUNT, 0, 0, -AMOUNT)
    back = SettledItem("adjustment", "rfnd_1", made["refund_id"], FEE + VAT, 0, 0, FEE + VAT, "refund.fee")
    if later:
        acquirer.transfer(other, item_of(charge), ago=2 * DAY)
        acquirer.transfer(
            item_of(acquirer.charge(shop.merchant)), item_of(acquirer.charge(shop.merchant)), void, back
        )
    else:
        acquirer.transfer(other, item_of(charge), void, back)
    acquirer.read()
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
    assert ledger.balance(shop.merchant.id) == ledger.Balance((3 if later else 1) * NET, 0, 0)
    (change,) = shop.get("/v1/balance/transactions?type=fee_returned").json()["balance_transactions"]
    assert change["amount"] == FEE + VAT
    assert not differences()
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), back)
    acquirer.read()
    assert asked() == [("adjustment", FEE + VAT)]
    assert not differences()


@pytest.mark.parametrize(("part", "given_back"), [(AMOUNT - 1, FEE + VAT), (AMOUNT, FEE + VAT - 1)])
def test_what_is_not_exactly_the_fee_of_a_void_is_asked(
    shop: Shop, acquirer: ReportingAcquirer, served_by: Serving, part: int, given_back: int
) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), item_of(charge), ago=2 * DAY)
    acquirer.read()
    served_by(sends=[TransferResult("succeeded", "rfnd_1")])
    made = shop.post("/v1/refunds", {"payment_id": charge.pk, "amount": part}).json()
    send_due_refunds()
    acquirer.transfer(
        item_of(acquirer.charge(shop.merchant)),
        item_of(acquirer.charge(shop.merchant)),
        SettledItem("refund", "rfnd_1", made["refund_id"], -part, 0, 0, -part),
        SettledItem("adjustment", "rfnd_1", made["refund_id"], given_back, 0, 0, given_back, "refund.fee"),
    )
    acquirer.read()
    assert asked() == [("adjustment", given_back)]
    assert not differences()


def test_adjustments_of_one_dispute_are_one(shop: Shop, acquirer: ReportingAcquirer) -> None:
    started = SettledItem("adjustment", "dspt_1", "", -50_000, 0, 0, -50_000, "dispute.started.debit")
    won = replace(started, amount=49_000, net=49_000, description="dispute.won.credit")
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), started, won)
    acquirer.read()
    assert asked() == [("adjustment", -1_000)]
    assert not differences()


def test_unknown_charge_that_one_transfer_lists_twice_is_asked(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    other = SettledItem("charge", "chrg_other", "", 500, 0, 0, 500)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), other, other)
    acquirer.read()
    assert asked() == [("paid_twice", 500), ("unknown_item", 500)]
    assert not differences()


@pytest.mark.django_db(transaction=True)
def test_readers_at_once_book_a_transfer_once(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charges = [acquirer.charge(shop.merchant) for _ in range(5)]
    acquirer.transfer(*map(item_of, charges[:3]))
    acquirer.transfer(*map(item_of, charges[3:]))
    run_concurrently(*[acquirer.read] * 4)
    assert AcquirerTransfer.objects.count() == 2
    assert (asked(), ledger.balance(shop.merchant.id).available) == ([], 5 * NET)
    assert not differences()


def test_database_keeps_what_was_settled(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(charge))
    acquirer.read()
    for change in ({"settled_at": None}, {"unsettled": 1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            CardCharge.objects.filter(pk=charge.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        AcquirerTransfer.objects.update(net_amount=1)


def test_item_of_another_amount_than_its_payment_is_asked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    item = replace(item_of(acquirer.charge(shop.merchant)), amount=AMOUNT - 1, net=NET - 1)
    acquirer.transfer(item)
    acquirer.read()
    assert asked() == [("fee_differs", -1)]
    assert not differences()


# --- what an acquirer reports that does not fit ----------------------------------------------------------


def test_charge_that_failed_here_is_an_unknown_item(shop: Shop, acquirer: ReportingAcquirer) -> None:
    now = clock.now() - 8 * DAY
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=AMOUNT, now=now)
    cards.store(made)
    with transaction.atomic():
        cards.complete(made.payment.id, ChargeResult("declined", "chrg_f", "card_declined"), now=now)
    failed = CardCharge.objects.get(pk=made.payment.pk)
    acquirer.transfer(item_of(failed), item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    assert asked() == [("unknown_item", NET)]
    assert ledger.balance(shop.merchant.id) == ledger.Balance(NET, 0, 0)
    assert not differences()


def test_transfer_that_is_tried_again_still_arrives(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent")
    acquirer.read()
    for state in ("pending", "paid"):
        acquirer.change(acquirer.transfers[0], state=state, paid_at=clock.now())
        acquirer.read()
    assert ledger.balance(shop.merchant.id).available == NET


@pytest.mark.parametrize(("before", "after", "sign"), [("paid", "failed", -1), ("failed", "paid", 1)])
def test_transfer_with_another_result_than_before_is_asked(
    shop: Shop, acquirer: ReportingAcquirer, before: Any, after: str, sign: int
) -> None:
    acquirer.charge(shop.merchant)
    transfer = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state=before)
    acquirer.read()
    balance = ledger.balance(shop.merchant.id)
    acquirer.change(transfer, state=after, paid_at=clock.now())
    acquirer.read()
    assert asked() == [("changed", sign * transfer.net)]
    assert ledger.balance(shop.merchant.id) == balance
    assert not differences()


def test_transfer_that_fails_after_its_amount_changed_is_asked_for_both(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    acquirer.charge(shop.merchant)
    transfer = acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    acquirer.change(transfer, amount=transfer.amount - 7, net=transfer.net - 7)
    acquirer.read()
    acquirer.change(acquirer.transfers[0], state="failed")
    acquirer.read()
    assert {difference for _, difference in asked()} == {-7, -transfer.net}
    assert not differences()


def test_transfer_that_takes_longer_than_the_next_ones_is_read_until_it_arrives(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    first = acquirer.charge(shop.merchant, ago=16 * DAY)
    slow = acquirer.transfer(item_of(first), state="sent", ago=9 * DAY)
    acquirer.read()
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    acquirer.change(slow, state="paid", paid_at=clock.now())
    acquirer.read()
    assert ledger.balance(shop.merchant.id).available == 2 * NET


def test_transfer_that_never_ends_is_given_up(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant, ago=40 * DAY)), state="sent", ago=32 * DAY)
    acquirer.read()
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    acquirer.read()
    assert acquirer.asked[-1][0] > clock.now() - 7 * DAY


def test_transfer_that_cannot_be_stored_stops_no_other(shop: Shop, acquirer: ReportingAcquirer) -> None:
    bad = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), ago=2 * DAY)
    acquirer.change(bad, amount=bad.amount + 1)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    with pytest.raises(IntegrityError, match="amounts_add_up"):
        acquirer.read()
    assert ledger.balance(shop.merchant.id).available == NET
    acquirer.change(acquirer.transfers[0], amount=bad.amount)
    acquirer.read()
    assert ledger.balance(shop.merchant.id).available == 2 * NET
    assert not differences()


def test_fees_that_were_not_known_lock_merchants_in_their_order(
    shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer
) -> None:
    for shops in ((shop, other_shop), (other_shop, shop)):
        acquirer.transfer(*[item_of(acquirer.charge(each.merchant, fee=None)) for each in shops])
    acquirer.read()
    owners = [
        Payment.objects.values_list("merchant_id", flat=True).get(pk=each.subject_id)
        for each in Journal.objects.filter(type="fee").order_by("id")
    ]
    assert owners == sorted({shop.merchant.id, other_shop.merchant.id}) * 2


@pytest.mark.parametrize("is_late", [True, False])
def test_settlement_differs_only_by_its_own_payments(
    shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer, is_late: bool
) -> None:
    items = [item_of(acquirer.charge(shop.merchant)), item_of(acquirer.charge(other_shop.merchant), fee=1)]
    transfer = acquirer.transfer(*items, state="sent", ago=(5 if is_late else 1) * DAY)
    acquirer.read()
    acquirer.change(transfer, state="paid", paid_at=clock.now())
    acquirer.read()
    found = [Settlement.objects.get(merchant=each.merchant) for each in (shop, other_shop)]
    assert [each.status_at(clock.now()) for each in found] == ["arrived", "differs"]


# --- questions ------------------------------------------------------------------------------------------


def test_difference_of_a_transfer_on_its_way_is_not_booked(shop: Shop, acquirer: ReportingAcquirer) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant), fee=FEE + 100), state="sent")
    acquirer.read()
    with pytest.raises(ValidationError, match="still expected"):
        questions.close(OpenQuestion.objects.get().pk, note="x", is_booked=True, now=clock.now())
    assert not differences()


def test_what_a_changed_transfer_lacks_is_booked_at_our_bank(shop: Shop, acquirer: ReportingAcquirer) -> None:
    transfer = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent")
    acquirer.read()
    less = transfer.net - 7
    acquirer.change(transfer, amount=transfer.amount - 7, net=less, state="paid", paid_at=clock.now())
    acquirer.read()
    questions.close(OpenQuestion.objects.get().pk, note="x", is_booked=True, now=clock.now())
    assert balance_of("bank:sandbox", *ON_ACCOUNTS) == [-less, 0, 0, 0]
    assert not differences()


def paid_after_a_failure(shop: Shop, acquirer: ReportingAcquirer) -> tuple[list[CardCharge], OpenQuestion]:
    """A later transfer has the money of one that failed after it, and lists none of its payments."""
    charges = [acquirer.charge(shop.merchant, ago=12 * DAY) for _ in range(2)]
    failing = acquirer.transfer(*map(item_of, charges), state="sent", ago=3 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=-2 * NET)
    acquirer.read()
    acquirer.change(failing, state="failed")
    acquirer.read()
    acquirer.read()
    assert asked() == [("amount_differs", 2 * NET), ("missing", -NET), ("missing", -NET)]
    return charges, OpenQuestion.objects.get(kind="amount_differs")


def test_payments_of_a_failed_transfer_are_settled_by_the_later_one_that_paid_them(
    shop: Shop, acquirer: ReportingAcquirer
) -> None:
    charges, question = paid_after_a_failure(shop, acquirer)
    failed = AcquirerTransfer.objects.get(state="failed")
    failed_transfers.pay_by_later_one(question.pk, failed_id=failed.pk, note="So they say.", now=clock.now())
    assert (asked(), balance_of(*ON_ACCOUNTS)) == ([], [0, 0, 0])
    assert ledger.balance(shop.merchant.id) == ledger.Balance(3 * NET, 0, 0)
    (paid_by,) = {shop.payment(each.pk)["settlement_id"] for each in charges}
    assert Settlement.objects.get(pk=paid_by).status_at(clock.now()) == "arrived"
    assert not differences()
    with pytest.raises(ValidationError, match="closed it before"):
        failed_transfers.pay_by_later_one(question.pk, failed_id=failed.pk, note="x", now=clock.now())


def test_failed_transfer_of_another_sum_pays_nothing(shop: Shop, acquirer: ReportingAcquirer) -> None:
    charge = acquirer.charge(shop.merchant, ago=12 * DAY)
    failing = acquirer.transfer(item_of(charge), state="sent", ago=3 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=1 - NET)
    acquirer.read()
    acquirer.change(failing, state="failed")
    acquirer.read()
    failed, question = (
        AcquirerTransfer.objects.get(state="failed"),
        OpenQuestion.objects.get(difference=NET - 1),
    )
    with pytest.raises(ValidationError, match="sums differ"):
        failed_transfers.pay_by_later_one(question.pk, failed_id=failed.pk, note="x", now=clock.now())
    answer = {"closed_at": clock.now(), "failed_transfer": failed}
    with pytest.raises(IntegrityError, match="the sum of its failed transfer"), transaction.atomic():
        OpenQuestion.objects.filter(pk=question.pk).update(**answer)
    assert not differences()


# --- the money on our bank account --------------------------------------------------------------------


def on_account(seller: Seller, amount: int) -> BankTransaction:
    """Money that the bank reports with an unknown reference."""
    code = seller.shop.qr_code()
    assert seller.bank.notify(code, satang=amount, reference1="PAYOUT").status_code == 200
    return BankTransaction.objects.get(reference1="PAYOUT")


def test_money_on_the_account_is_a_transfer_and_leaves_suspense(
    shop: Shop, bank: SandboxBankClient, acquirer: ReportingAcquirer
) -> None:
    made = acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    money = on_account(Seller(shop, bank), made.net)
    (transfer,) = acquirer_transfers.candidates(money)
    assert balance_of("suspense:sandbox") == [made.net]
    acquirer_transfers.identify(money.id, transfer_id=transfer.pk, note="Its slip.", now=clock.now())
    assert balance_of("suspense:sandbox") == [0]
    assert ledger.balance(shop.merchant.id).available == NET
    money.refresh_from_db()
    assert (money.resolution_state, acquirer_transfers.candidates(money)) == ("acquirer", [])
    assert not differences()


def test_transfers_of_the_other_mode_hide_no_candidate(
    shop: Shop, bank: SandboxBankClient, acquirer: ReportingAcquirer
) -> None:
    made = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), ago=2 * DAY)
    acquirer.read()
    found = AcquirerTransfer.objects.get()
    for number in range(acquirer_transfers.SHOWN):
        found.pk, found.acquirer, found.transfer_id = f"atr_{number}", "omise", f"trsf_live_{number}"
        found.created_at = clock.now()
        found.save(force_insert=True)
    (candidate,) = acquirer_transfers.candidates(on_account(Seller(shop, bank), made.net))
    assert candidate.acquirer == "sandbox"


def test_money_of_another_amount_is_no_transfer(
    shop: Shop, bank: SandboxBankClient, acquirer: ReportingAcquirer
) -> None:
    made = acquirer.transfer(item_of(acquirer.charge(shop.merchant)))
    acquirer.read()
    money = on_account(Seller(shop, bank), made.net - 1)
    with pytest.raises(ActRefused, match="another amount"):
        acquirer_transfers.identify(
            money.id, transfer_id=AcquirerTransfer.objects.get().pk, note="x", now=clock.now()
        )
    assert balance_of("suspense:sandbox") == [made.net - 1]
