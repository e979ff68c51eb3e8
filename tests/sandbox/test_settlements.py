"""The sandbox bank as an acquirer: fees of charges, and its daily transfers."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
import requests
from django.conf import settings as configured
from django.core.management import call_command
from pytest_django import Settings

from banks import AcquirerTransfer, ChargeRequest, InquiryFailed, SettledItem, TransferOrder
from banks.sandbox_cards import SandboxAcquirer
from core import clock
from sandbox import bank_clock, settlements
from sandbox.models import FEE_CHANGE, FEE_IS_FINAL_AFTER, SandboxCharge, SandboxTransfer
from tests.banks.ledger_copy import MemoryLedger
from tests.concurrency import run_concurrently

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DAY = timedelta(days=1)
# The published examples of Opn: amount, fee, VAT. 5,000 satang are 182.50 of fee, rounded half up.
PUBLISHED_FEES = [
    (100_000, 3_650, 256),
    (31_000, 1_132, 79),
    (12_345, 451, 32),
    (300_049, 10_952, 767),
    (5_000, 183, 13),
]
Pay = Callable[..., str]


@pytest.fixture
def pay(acquirer: SandboxAcquirer) -> Pay:
    """Charge 1,000.00 THB, or another amount. Returns the id of the charge."""

    def charge(order_id: str, fault: str = "visa", amount: int = 100_000) -> str:
        return acquirer.charge(ChargeRequest(order_id, f"tok_test_{fault}", amount)).charge_id

    return charge


def listed(acquirer: SandboxAcquirer, *, days: int = 30) -> list[AcquirerTransfer]:
    now = clock.now()
    return acquirer.settlements(now - days * DAY, now + DAY, MemoryLedger())


def transfer(acquirer: SandboxAcquirer) -> AcquirerTransfer:
    """The one transfer that the command makes."""
    call_command("sandbox_transfer")
    (made,) = listed(acquirer)
    return made


def age(span: timedelta) -> None:
    """Let the time pass since the charges."""
    for charge in SandboxCharge.objects.all():
        charge.created_at -= span
        charge.transferable_at -= span
        charge.save()


@pytest.mark.parametrize(("amount", "fee", "fee_vat"), PUBLISHED_FEES)
def test_sandbox_fee_is_rounded_as_published(
    acquirer: SandboxAcquirer, amount: int, fee: int, fee_vat: int
) -> None:
    charged = acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", amount))
    assert (charged.fee, charged.fee_vat) == (fee, fee_vat)
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()) == charged


@pytest.mark.parametrize("token", ["tok_test_3ds", "tok_test_declined"])
def test_sandbox_charge_without_success_has_no_fee(acquirer: SandboxAcquirer, token: str) -> None:
    charged = acquirer.charge(ChargeRequest("pay_1", token, 100_000))
    assert (charged.fee, charged.fee_vat) == (None, None)
    assert settlements.transfer_all(clock.now()) is None


def test_sandbox_transfer_has_charges_and_refunds(acquirer: SandboxAcquirer, pay: Pay) -> None:
    charge_id, other_id = pay("pay_1"), pay("pay_2", amount=31_000)
    refund = acquirer.send(TransferOrder("ref_1", "refund", 30_000, "", "", "", charge_id))
    made = transfer(acquirer)
    assert made.items == (
        SettledItem("charge", charge_id, "pay_1", 100_000, 3_650, 256, 96_094),
        SettledItem("charge", other_id, "pay_2", 31_000, 1_132, 79, 29_789),
        SettledItem("refund", refund.reference, "ref_1", -30_000, 0, 0, -30_000),
    )
    assert (made.amount, made.fee, made.fee_vat, made.net) == (95_883, 2_804, 196, 92_883)


def test_sandbox_transfer_is_sent_then_paid(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1")
    made = transfer(acquirer)
    assert (made.state, made.sent_at, made.paid_at) == ("sent", made.created_at, None)
    SandboxTransfer.objects.update(paid_at=made.created_at)
    (paid,) = listed(acquirer)
    assert (paid.state, paid.paid_at) == ("paid", made.created_at)


def test_sandbox_transfers_each_morning_what_was_held_for_a_day(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1")
    age(2 * DAY)
    pay("pay_2")
    age(2 * DAY)
    pay("pay_3")
    first, second = listed(acquirer)
    assert [[item.order_id for item in each.items] for each in (first, second)] == [["pay_1"], ["pay_2"]]
    for each in (first, second):
        morning = each.created_at.astimezone(clock.BANGKOK)
        assert (morning.hour, morning.minute) == (8, 0)
    assert listed(acquirer) == [first, second]


def test_concurrent_lists_make_one_transfer(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1")
    age(3 * DAY)
    results = run_concurrently(*[partial(listed, acquirer)] * 5)
    assert [len(found) for found in results] == [1] * 5
    assert SandboxTransfer.objects.count() == 1


def test_sandbox_settlements_of_a_period(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1")
    made = transfer(acquirer)
    second = timedelta(seconds=1)
    assert acquirer.settlements(made.created_at, made.created_at + second, MemoryLedger()) != []
    assert acquirer.settlements(made.created_at - second, made.created_at, MemoryLedger()) == []


def test_refunds_beyond_the_charges_wait_for_more(acquirer: SandboxAcquirer, pay: Pay) -> None:
    charge_id = pay("pay_1")
    transfer(acquirer)
    acquirer.send(TransferOrder("ref_1", "refund", 100_000, "", "", "", charge_id))
    pay("pay_2")
    call_command("sandbox_transfer")
    assert len(listed(acquirer)) == 1
    pay("pay_3")
    call_command("sandbox_transfer")
    _, second = listed(acquirer)
    assert [item.order_id for item in second.items] == ["pay_2", "pay_3", "ref_1"]


def test_items_over_several_pages_are_read_completely(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_0")
    now, first = clock.now(), SandboxCharge.objects.get()
    copies = [_copy(first, number, now) for number in range(1, 250)]
    SandboxCharge.objects.bulk_create(copies)
    made = transfer(acquirer)
    assert len({item.order_id for item in made.items}) == 250
    assert sum(item.net for item in made.items) == made.amount == 250 * 96_094


def _copy(charge: SandboxCharge, number: int, now: datetime) -> SandboxCharge:
    names = ("amount", "brand", "last4", "fee", "fee_vat", "transferable_at")
    values = {name: getattr(charge, name) for name in names}
    return SandboxCharge(id=f"sbc_{number}", order_id=f"pay_{number}", created_at=now, **values)


# What test tokens make go wrong.


def test_late_fee_is_shown_after_a_minute(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "fee_late")
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()).fee is None
    age(FEE_IS_FINAL_AFTER)
    found = acquirer.find("pay_1", charge_id="", starts_at=clock.now())
    assert (found.fee, found.fee_vat) == (3_650, 256)


def test_changed_fee_is_shown_and_settled_later(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "fee_changed")
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()).fee == 3_650
    age(FEE_IS_FINAL_AFTER)
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()).fee == 3_650 + FEE_CHANGE
    (item,) = transfer(acquirer).items
    assert (item.fee, item.net) == (3_650 + FEE_CHANGE, 96_094 - FEE_CHANGE)


def test_vat_is_rounded_up(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "vat_rounded_up", 31_000)
    (item,) = transfer(acquirer).items
    assert (item.fee, item.fee_vat, item.net) == (1_132, 80, 29_788)


def test_short_transfer_is_one_satang_less_than_its_items(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "short_transfer")
    made = transfer(acquirer)
    assert sum(item.net for item in made.items) - made.amount == 1


def test_charge_that_is_not_settled_is_in_no_transfer(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "not_settled")
    pay("pay_2")
    assert [item.order_id for item in transfer(acquirer).items] == ["pay_2"]
    call_command("sandbox_transfer")
    assert len(listed(acquirer)) == 1


def test_transfer_is_made_twice(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1", "transferred_twice")
    call_command("sandbox_transfer")
    first, second = listed(acquirer)
    assert (first.amount, first.items) == (second.amount, second.items)


# The test clock.


def test_test_clock_ends_the_hold_and_transfers(acquirer: SandboxAcquirer, pay: Pay) -> None:
    pay("pay_1")
    pay("pay_2")
    bank_clock.settle_sooner(["pay_1"], span=DAY / 2, now=clock.now())
    assert listed(acquirer) == []
    bank_clock.settle_sooner(["pay_1"], span=DAY, now=clock.now())
    (made,) = listed(acquirer)
    assert [item.order_id for item in made.items] == ["pay_1"]


# Bad requests and answers.


@pytest.mark.parametrize(
    "path",
    [
        "/transfers",
        "/transfers?from=x&to=y&limit=1&offset=0",
        "/transfers?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z&limit=1&offset=-1",
        "/transfers?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z&limit=x&offset=0",
        "/transfers?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00&limit=1&offset=0",
        "/transfers/sbt_1/items?limit=1",
        "/transfers/sbt_1/items/more?limit=1&offset=0",
    ],
)
def test_malformed_request_for_transfers_is_400(url: str, path: str) -> None:
    headers = {"Authorization": f"Bearer {configured.SANDBOX_BANK_SECRET}"}
    assert requests.get(f"{url}{path}", headers=headers, timeout=60).status_code == 400


def test_settlements_without_the_secret_raise_inquiry_failed(url: str) -> None:
    with pytest.raises(InquiryFailed) as failure:
        listed(SandboxAcquirer("another secret", url))
    assert failure.value.cause == "credentials"


def test_settlements_without_a_server_raise_inquiry_failed(settings: Settings) -> None:
    with pytest.raises(InquiryFailed) as failure:
        listed(SandboxAcquirer("the secret", "http://127.0.0.1:1"))
    assert failure.value.cause == "unreachable"
