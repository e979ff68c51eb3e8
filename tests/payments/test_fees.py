"""What banks and acquirers take of payments: the fee, its VAT, the net, and money that has not settled."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from banks import ChargeResult
from core import clock, ids
from core.clock import BANGKOK
from ledger import services as ledger
from ledger.journal_types import JournalType
from ledger.models import Entry
from ledger.services import Fee
from merchants import services as merchants
from payments import cards, fee_terms, settling
from payments.fee_terms import FeeTerms
from payments.models import CardCharge, Payment
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop, open_shop
from webhooks.models import Event

pytestmark = pytest.mark.django_db
NOW_UNKNOWN = ChargeResult("succeeded", "chrg_1", None, "visa", "4242")
# 3.65 % of 1,500.00 THB and 7 % VAT.
CHARGED = replace(NOW_UNKNOWN, fee=5_475, fee_vat=383)
NET = 150_000 - 5_475 - 383


def by_card(shop: Shop, *results: ChargeResult) -> str:
    """A card payment over 1,500.00 THB, with what the acquirer answers one after the other."""
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=150_000, now=clock.now())
    cards.store(made)
    for each in results:
        complete(made.payment.id, each)
    return str(made.payment.id)


def complete(payment_id: str, result: ChargeResult) -> None:
    with transaction.atomic():
        cards.complete(payment_id, result, now=clock.now())


def fees_of(shop: Shop, payment_id: str) -> tuple[int | None, int | None, int | None]:
    payment = shop.get(f"/v1/payments/{payment_id}").json()
    return payment["fee"], payment["fee_vat"], payment["net"]


def balance(shop: Shop) -> dict[str, int]:
    """Without what is zero."""
    found = shop.get("/v1/balance").json()
    return {name: value for name, value in found.items() if name != "currency" and value}


def entries_of(payment_id: str, *types: str) -> dict[str, int]:
    """The lines of the journals of a payment, by the account without the id of the merchant."""
    lines = Entry.objects.filter(journal__subject_id=payment_id, journal__type__in=types)
    return {
        code
        if ":" in code and not code.partition(":")[2].startswith("mch_")
        else code.partition(":")[0]: amount
        for code, amount in lines.values_list("account_id", "amount")
    }


def events_of(payment_id: str) -> list[str]:
    found = Event.objects.filter(subject_id=payment_id).order_by("created_at", "id")
    return [str(each) for each in found.values_list("type", flat=True)]


def refund(shop: Shop, payment_id: str, **fields: Any) -> Any:
    return shop.post("/v1/refunds", {"payment_id": payment_id, **fields})


def withdraw(shop: Shop, amount: int) -> Any:
    return shop.post(
        "/v1/withdrawals",
        {
            "amount": amount,
            "currency": "THB",
            "bank_code": "SCB",
            "bank_account": "4051234567",
            "account_name": "Somtam House",
        },
    )


def set_terms(shop: Shop, at: datetime, **terms: Any) -> FeeTerms:
    """Terms that begin on the day after `at`."""
    day = at.astimezone(BANGKOK).date() + timedelta(days=1)
    values = {"fixed": 0, "rate": 0, "vat_rate": 700} | terms
    return fee_terms.set_terms(shop.merchant, starts_on=day, now=at, **values)


# --- cards --------------------------------------------------------------------------------------------


def test_card_payment_brings_the_net_which_waits_for_the_acquirer(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, CHARGED)
    assert fees_of(card_shop, payment_id) == (5_475, 383, NET)
    assert balance(card_shop) == {"pending_settlement": NET}
    assert entries_of(payment_id, "payment") == {
        "acquirer:sandbox": -150_000,
        "unsettled": NET,
        "fees:sandbox": 5_475,
        "fee_vat:sandbox": 383,
    }
    (event,) = card_shop.get("/v1/events?event=payment.succeeded").json()["events"]
    assert (event["data"]["fee"], event["data"]["fee_vat"], event["data"]["net"]) == (5_475, 383, NET)
    (row,) = card_shop.get("/v1/balance/transactions").json()["balance_transactions"]
    assert (row["type"], row["pending_settlement_amount"], row["pending_settlement_after"]) == (
        "unsettled_payment",
        NET,
        NET,
    )
    assert not differences()


def test_unsettled_money_cannot_be_withdrawn(card_shop: Shop) -> None:
    by_card(card_shop, CHARGED)
    assert withdraw(card_shop, 10_000).json()["error"]["code"] == "insufficient_funds"


@pytest.mark.parametrize("fee", [None, 0])
def test_fee_that_is_known_later_is_taken_then(card_shop: Shop, fee: int | None) -> None:
    payment_id = by_card(card_shop, NOW_UNKNOWN)
    assert fees_of(card_shop, payment_id) == (None, None, None)
    assert balance(card_shop) == {"pending_settlement": 150_000}
    complete(payment_id, CHARGED if fee is None else replace(CHARGED, fee=0, fee_vat=0))
    expected = (5_475, 383, NET) if fee is None else (0, 0, 150_000)
    assert fees_of(card_shop, payment_id) == expected
    assert balance(card_shop) == {"pending_settlement": expected[2]}
    assert events_of(payment_id) == ["payment.succeeded", "payment.fee_known"]
    complete(payment_id, CHARGED)
    assert fees_of(card_shop, payment_id) == expected
    assert not differences()


def test_charge_without_a_fee_is_inquired_again(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, NOW_UNKNOWN)
    before = CardCharge.objects.get(pk=payment_id).due_at
    complete(payment_id, NOW_UNKNOWN)
    assert CardCharge.objects.get(pk=payment_id).due_at > before


def test_first_payment_can_be_refunded_whole_on_its_day_and_the_fee_is_owed(card_shop: Shop) -> None:
    by_card(card_shop, CHARGED)
    payment_id = by_card(card_shop, CHARGED)
    assert refund(card_shop, payment_id).status_code == 200
    assert balance(card_shop) == {"reserved": 150_000, "owed": 150_000 - NET, "pending_settlement": NET}
    assert not differences()


def test_refund_that_no_money_of_the_merchant_covers_is_refused(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, CHARGED)
    assert refund(card_shop, payment_id).json()["error"]["code"] == "insufficient_funds"
    assert balance(card_shop) == {"pending_settlement": NET}
    assert refund(card_shop, payment_id, amount=NET).status_code == 200
    assert balance(card_shop) == {"reserved": NET}
    assert not differences()


def test_canceled_refund_makes_no_money_available_before_the_acquirer_pays(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, CHARGED)
    made = refund(card_shop, payment_id, amount=100_000).json()
    assert balance(card_shop) == {"reserved": 100_000, "pending_settlement": NET - 100_000}
    assert card_shop.post(f"/v1/refunds/{made['refund_id']}/cancel").status_code == 200
    assert balance(card_shop) == {"pending_settlement": NET}
    assert not differences()


def test_merchant_may_withdraw_before_settlement_if_staff_say_so(card_shop: Shop) -> None:
    merchants.set_policy(card_shop.merchant.id, may_withdraw_unsettled=True)
    payment_id = by_card(card_shop, NOW_UNKNOWN)
    assert balance(card_shop) == {"available": 150_000}
    assert withdraw(card_shop, 150_000).status_code == 200
    complete(payment_id, CHARGED)
    assert balance(card_shop) == {"reserved": 150_000, "owed": 150_000 - NET}
    assert not differences()


def test_late_fee_leaves_what_a_failed_refund_gives_back_to_the_transfer(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, NOW_UNKNOWN)
    made = refund(card_shop, payment_id, amount=149_000).json()
    complete(payment_id, CHARGED)
    owed = 150_000 - NET
    assert balance(card_shop) == {"reserved": 149_000, "owed": owed, "pending_settlement": 1_000}
    card_shop.post(f"/v1/refunds/{made['refund_id']}/cancel")
    assert balance(card_shop) == {"owed": owed, "pending_settlement": 150_000}
    with transaction.atomic():
        settling.settle(list(settling.lock([payment_id]).values()), now=clock.now())
    assert balance(card_shop) == {"available": NET}


def test_payment_that_the_fee_takes_whole_brings_nothing(card_shop: Shop) -> None:
    payment_id = by_card(card_shop, replace(CHARGED, fee=150_000, fee_vat=0))
    assert (fees_of(card_shop, payment_id), balance(card_shop)) == ((150_000, 0, 0), {})
    assert card_shop.get("/v1/balance/transactions").json()["balance_transactions"] == []
    assert not differences()


@pytest.mark.parametrize("fee", [150_001, -1])
def test_database_refuses_a_fee_beyond_the_payment(card_shop: Shop, fee: int) -> None:
    payment_id = by_card(card_shop, NOW_UNKNOWN)
    with pytest.raises(IntegrityError, match="payment_fee_within_amount"), transaction.atomic():
        Payment.objects.filter(pk=payment_id).update(fee=fee, fee_vat=0)


# --- terms of banks -----------------------------------------------------------------------------------


def test_qr_payment_has_no_fee_without_terms(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=150_000)
    assert fees_of(shop, code["payment_id"]) == (None, None, None)
    bank.notify(code)
    assert fees_of(shop, code["payment_id"]) == (0, 0, 150_000)
    assert balance(shop) == {"available": 150_000}


def test_terms_apply_from_their_first_day_in_bangkok_on(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    set_terms(shop, noon, fixed=500, rate=80)
    last = datetime(2026, 11, 21, 23, 59, 59, tzinfo=BANGKOK)
    for at, fees in [(last, (0, 0, 150_000)), (last + timedelta(seconds=1), (1_700, 119, 148_181))]:
        with time_machine.travel(at, tick=False):
            code = shop.qr_code(amount=150_000)
            bank.notify(code, paid_at=at)
            assert fees_of(shop, code["payment_id"]) == fees
    assert entries_of(code["payment_id"], "payment") == {
        "bank:sandbox": -150_000,
        "available": 148_181,
        "fees:sandbox": 1_700,
        "fee_vat:sandbox": 119,
    }
    assert balance(shop) == {"available": 298_181}
    assert not differences()


def test_new_terms_leave_earlier_payments_as_they_are(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    set_terms(shop, noon, rate=100)
    with time_machine.travel(noon + timedelta(days=1), tick=False):
        code = shop.qr_code(amount=150_000)
        bank.notify(code, paid_at=clock.now())
        set_terms(shop, clock.now(), rate=200)
    with time_machine.travel(noon + timedelta(days=2), tick=False):
        later = shop.qr_code(amount=150_000)
        bank.notify(later, paid_at=clock.now())
        assert fees_of(shop, code["payment_id"])[0] == 1_500
        assert fees_of(shop, later["payment_id"])[0] == 3_000


@pytest.mark.parametrize(
    ("received", "terms", "fee"),
    [
        (100_000, (0, 365, 700), Fee(3_650, 256)),  # 255.5 satang of VAT
        (1_010, (0, 365, 700), Fee(37, 3)),  # 36.865 and 2.59
        (100, (0, 50, 700), Fee(1, 0)),  # 0.5 and 0.07
        (100, (1_000, 0, 700), Fee(100, 0)),  # the fee is at most the payment
        (1_000, (990, 0, 700), Fee(990, 10)),
        (150_000, (0, 0, 700), Fee(0, 0)),
    ],
)
def test_fee_and_vat_are_rounded_to_the_satang_each_by_itself(
    received: int, terms: tuple[int, int, int], fee: Fee
) -> None:
    fixed, rate, vat_rate = terms
    assert FeeTerms(fixed=fixed, rate=rate, vat_rate=vat_rate).fee_of(received) == fee


def test_terms_never_begin_on_a_day_that_has_begun(shop: Shop, noon: datetime) -> None:
    with pytest.raises(ValidationError, match="later day"):
        fee_terms.set_terms(
            shop.merchant, starts_on=noon.astimezone(BANGKOK).date(), fixed=1, rate=0, vat_rate=0, now=noon
        )
    with pytest.raises(IntegrityError, match="later day"), transaction.atomic():
        FeeTerms.objects.create(
            merchant=shop.merchant,
            starts_on=noon.astimezone(BANGKOK).date(),
            fixed=1,
            rate=0,
            vat_rate=0,
            created_at=noon,
        )


def test_a_day_has_one_first_terms_and_they_stay(shop: Shop, noon: datetime) -> None:
    terms = set_terms(shop, noon, rate=100)
    with pytest.raises(ValidationError, match="already"):
        set_terms(shop, noon, rate=200)
    with pytest.raises(Exception, match="never changed"), transaction.atomic():
        FeeTerms.objects.filter(pk=terms.pk).update(rate=0)


def test_fee_is_not_given_back_by_a_refund(shop: Shop, bank: SandboxBankClient, noon: datetime) -> None:
    set_terms(shop, noon - timedelta(days=1), rate=100)
    with time_machine.travel(noon, tick=False):
        codes = [shop.qr_code(amount=150_000) for _ in range(2)]
        for code in codes:
            bank.notify(code, paid_at=noon)
        assert refund(shop, codes[0]["payment_id"]).status_code == 200
        assert ledger.balance(shop.merchant.id).available == 150_000 - 2 * 1_605
        assert not differences()


def test_fee_of_held_money_belongs_to_the_bank_that_has_it(db: None) -> None:
    """Suspense of live money has no bank in its name."""
    merchant, now = open_shop("Roti House", "live").merchant, clock.now()
    payment_id = ids.new("pay_", now)
    paid = ledger.Credit(merchant.id, payment_id, 10_000, fee=Fee(100, 7, "scb"))
    ledger.hold({ids.new("btx_", now): 10_000}, source="bank:scb", now=now)
    ledger.credit([paid], type=JournalType.PAYMENT, source="suspense", now=now)
    assert entries_of(payment_id, "payment") == {
        "suspense": -10_000, "available": 9_893, "fees:scb": 100, "fee_vat:scb": 7
    }  # fmt: skip
