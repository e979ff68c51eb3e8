"""The transfers of Opn Payments (Omise), with the charges and refunds that they pay out."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from banks import AcquirerTransfer, InquiryFailed, SettledItem, omise_settlements
from banks.http_client import Response
from banks.omise import Omise
from tests.banks.fake_omise import Json, error, listing, response
from tests.banks.ledger_copy import MemoryLedger
from tests.banks.opn_double import HOLD, OpnDouble, fees_of
from tests.webhook_receiver import Reply

DAY = timedelta(days=1)
START = datetime(2026, 11, 1, 3, tzinfo=UTC)
FEES = {31_000: (1_132, 79), 100_000: (3_650, 256), 150_000: (5_475, 383)}
JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@pytest.fixture
def opn() -> Iterator[OpnDouble]:
    with OpnDouble.running() as acquirer:
        yield acquirer


def settlements(opn: OpnDouble, first_day: float, last_day: float) -> list[AcquirerTransfer]:
    """The transfers of the days from START on."""
    adapter = Omise("skey_test_1", opn.base_url)
    return adapter.settlements(START + first_day * DAY, START + last_day * DAY, MemoryLedger())


def add_days(opn: OpnDouble, days: int, *, per_day: int = 1) -> None:
    """Charges each day, and from the eighth day on a transfer an hour later."""
    for day in range(days):
        for number in range(per_day):
            opn.add_charge(f"pay_{day}_{number}", 100_000, START + day * DAY)
        if day >= HOLD.days:
            opn.add_transfer(START + day * DAY + timedelta(hours=1))


def net_of(amount: int) -> int:
    return amount - sum(FEES[amount])


def test_transfer_has_charges_and_refunds_that_became_transferable(opn: OpnDouble) -> None:
    charge = opn.add_charge("pay_1", 100_000, START)
    opn.add_charge("pay_2", 31_000, START)
    opn.add_refund("ref_1", charge, 30_000, START + DAY)
    opn.add_charge("pay_3", 31_000, START + 2 * DAY)  # held until the next transfer
    opn.add_transfer(START + 8 * DAY)
    amount = net_of(100_000) + net_of(31_000) - 30_000
    assert settlements(opn, 0, 30) == [
        AcquirerTransfer(
            id="trsf_0",
            amount=amount,
            fee=2_804,
            fee_vat=196,
            net=amount - 3_000,
            state="paid",
            created_at=START + 8 * DAY,
            sent_at=START + 8 * DAY,
            paid_at=START + 8 * DAY,
            items=(
                SettledItem("charge", "chrg_0", "pay_1", 100_000, 3_650, 256, 96_094),
                SettledItem("charge", "chrg_1", "pay_2", 31_000, 1_132, 79, 29_789),
                SettledItem("refund", "rfnd_0", "ref_1", -30_000, 0, 0, -30_000),
            ),
        )
    ]


def test_items_of_each_transfer_begin_after_the_transfer_before(opn: OpnDouble) -> None:
    add_days(opn, 12)
    items = {each.id: [item.order_id for item in each.items] for each in settlements(opn, 9, 11)}
    assert items == {"trsf_2": ["pay_2_0"], "trsf_3": ["pay_3_0"]}
    (first,) = settlements(opn, 0, 8)
    assert [item.order_id for item in first.items] == ["pay_0_0"]


def test_period_includes_its_begin_and_excludes_its_end(opn: OpnDouble) -> None:
    for day in (1, 2):
        opn.add_charge(f"pay_{day}", 100_000, START + day * DAY, hold=timedelta(0))
        opn.add_transfer(START + day * DAY)
    assert [each.id for each in settlements(opn, 1, 2)] == ["trsf_0"]
    assert settlements(opn, 2.1, 30) == []


def test_transfers_over_several_pages_are_read_completely(opn: OpnDouble) -> None:
    opn.page_limit = 7
    add_days(opn, 40, per_day=3)
    found = settlements(opn, 0, 60)
    assert len(found) == 33
    assert all(len(each.items) == 3 for each in found)
    assert all(sum(item.net for item in each.items) == each.amount for each in found)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"sent": False, "paid": False, "sent_at": None, "paid_at": None}, "pending"),
        ({"paid": False, "paid_at": None}, "sent"),
        ({}, "paid"),
        ({"sent": False, "paid": False, "failure_code": "insufficient_balance"}, "pending"),
        ({"paid": False, "failure_code": "insufficient_balance", "fail_fast": True}, "failed"),
        ({"paid": False, "failure_code": "transfer_failed"}, "failed"),
        ({"sent": False, "paid": False, "deleted": True}, "failed"),
    ],
)
def test_state_of_transfer_is_read(opn: OpnDouble, changes: Json, state: str) -> None:
    opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_transfer(START + DAY, **changes)
    (found,) = settlements(opn, 0, 30)
    assert (found.state, len(found.items)) == (state, 0 if state == "failed" else 1)
    for name in ("sent_at", "paid_at"):
        assert getattr(found, name) == (None if name in changes else START + DAY)


def test_money_of_failed_transfer_is_in_the_next_one(opn: OpnDouble) -> None:
    opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_transfer(START + DAY, paid=False, failure_code="transfer_failed")
    opn.add_entry("trsf_0", net_of(100_000), "transfer.failed", START + 2 * DAY)
    opn.add_charge("pay_2", 31_000, START + 2 * DAY, hold=timedelta(0))
    opn.add_transfer(START + 3 * DAY)
    failed, paid = settlements(opn, 0, 30)
    assert (failed.state, failed.items) == ("failed", ())
    assert sum(item.net for item in paid.items) == paid.amount == net_of(100_000) + net_of(31_000)


@pytest.mark.parametrize(
    ("origin", "key", "amount", "reference"),
    [
        ("dspt_1", "dispute.started.debit", -50_000, "dspt_1"),
        ("rcpt_1", "receipt.vat_adjustment.credit", 12, "rcpt_1"),
        (None, "adjustment", 7, "trxn_1"),
    ],
)
def test_other_ledger_entries_are_adjustments(
    opn: OpnDouble, origin: str | None, key: str, amount: int, reference: str
) -> None:
    opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_entry(origin, amount, key, START + DAY)
    opn.add_transfer(START + 2 * DAY)
    (found,) = settlements(opn, 0, 30)
    assert found.items[1] == SettledItem("adjustment", reference, "", amount, 0, 0, amount, key)


def test_returned_fee_of_voided_charge_is_an_adjustment_of_its_refund(opn: OpnDouble) -> None:
    charge = opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_charge("pay_2", 31_000, START, hold=timedelta(0))
    opn.add_refund("ref_1", charge, 100_000, START)
    opn.add_entry("rfnd_0", 3_906, "refund.fee_returned", START)
    opn.add_transfer(START + DAY)
    (found,) = settlements(opn, 0, 30)
    key = "refund.fee_returned"
    assert found.items[3] == SettledItem("adjustment", "rfnd_0", "ref_1", 3_906, 0, 0, 3_906, key)
    assert sum(item.net for item in found.items) == net_of(31_000)


def test_charge_that_was_captured_late_is_fetched(opn: OpnDouble) -> None:
    opn.add_charge("pay_0", 31_000, START, hold=timedelta(0))
    opn.add_transfer(START + 40 * DAY)
    charge = opn.add_charge("pay_1", 100_000, START + 41 * DAY, hold=timedelta(0))
    opn.add_transfer(START + 42 * DAY)
    opn.charges.remove(charge)
    charge["created_at"] = opn.charges[0]["created_at"]
    opn.charges.insert(0, charge)
    (found,) = settlements(opn, 41, 60)
    assert [item.order_id for item in found.items] == ["pay_1"]
    assert f"/charges/{charge['id']}" in [request.path for request in opn.requests]


def test_later_entry_of_an_old_charge_is_an_adjustment(opn: OpnDouble) -> None:
    charge = opn.add_charge("pay_0", 100_000, START, hold=timedelta(0))
    opn.add_transfer(START + 40 * DAY)
    opn.add_entry(charge["id"], 5_000, "charge.fee.credit", START + 41 * DAY)
    opn.add_transfer(START + 42 * DAY)
    (found,) = settlements(opn, 41, 60)
    assert found.items == (
        SettledItem("adjustment", charge["id"], "", 5_000, 0, 0, 5_000, "charge.fee.credit"),
    )


def test_reading_continues_where_the_one_before_ended(opn: OpnDouble) -> None:
    adapter, ledger = Omise("skey_test_1", opn.base_url), MemoryLedger()
    add_days(opn, 40, per_day=3)
    adapter.settlements(START, START + 60 * DAY, ledger)
    opn.requests.clear()
    opn.add_charge("pay_new", 100_000, START + 40 * DAY, hold=timedelta(0))
    opn.add_transfer(START + 40 * DAY + timedelta(hours=1))
    *_, newest = adapter.settlements(START + 38 * DAY, START + 60 * DAY, ledger)
    assert [item.order_id for item in newest.items] == [f"pay_33_{number}" for number in range(3)] + [
        "pay_new"
    ]
    assert sum(item.net for item in newest.items) == newest.amount
    assert len(opn.requests) <= 14
    opn.requests.clear()
    adapter.settlements(START + 38 * DAY, START + 60 * DAY, ledger)
    assert {request.path.partition("?")[0] for request in opn.requests} == {"/transfers"}


def test_reading_that_is_too_long_is_continued(opn: OpnDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omise_settlements, "MAX_PAGES", 30)
    adapter, ledger = Omise("skey_test_1", opn.base_url), MemoryLedger()
    add_days(opn, 40)
    for _ in range(20):
        try:
            found = adapter.settlements(START, START + 60 * DAY, ledger)
            break
        except InquiryFailed:
            continue
    assert [len(each.items) for each in found] == [1] * 33
    assert all(sum(item.net for item in each.items) == each.amount for each in found)


def test_entry_that_appears_late_is_read(opn: OpnDouble) -> None:
    adapter, ledger = Omise("skey_test_1", opn.base_url), MemoryLedger()
    add_days(opn, 10)
    adapter.settlements(START, START + 9.5 * DAY, ledger)
    opn.add_charge("pay_late", 100_000, START + 9 * DAY + timedelta(minutes=30))
    opn.charges.sort(key=lambda each: str(each["created_at"]))
    opn.transactions.sort(key=lambda each: str(each["created_at"]))
    opn.add_transfer(START + 17 * DAY)
    *_, newest = adapter.settlements(START + 10 * DAY, START + 60 * DAY, ledger)
    assert "pay_late" in [item.order_id for item in newest.items]


# The faults of the double, as the caller sees them.


def test_late_fee_is_unknown_until_it_is_shown(opn: OpnDouble) -> None:
    charge = opn.add_charge("pay_1", 100_000, START, fault="fee_late", hold=timedelta(0))
    opn.add_transfer(START + DAY)
    assert settlements(opn, 0, 30)[0].items[0].fee is None
    opn.show_fee(charge)
    item = settlements(opn, 0, 30)[0].items[0]
    assert (item.fee, item.fee_vat) == FEES[100_000]


def test_fee_that_changed_later_contradicts_the_ledger(opn: OpnDouble) -> None:
    charge = opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_transfer(START + DAY)
    opn.show_fee(charge, fee_change=50)
    (item,) = settlements(opn, 0, 30)[0].items
    assert (item.fee, item.net) == (3_700, 96_094)


def test_short_transfer_is_less_than_its_items(opn: OpnDouble) -> None:
    opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_transfer(START + DAY, short_by=1)
    (found,) = settlements(opn, 0, 30)
    assert sum(item.net for item in found.items) - found.amount == 1


def test_charge_that_is_not_settled_is_in_no_transfer(opn: OpnDouble) -> None:
    for number, fault in enumerate(("", "not_settled", "")):
        opn.add_charge(f"pay_{number}", 100_000, START, fault=fault, hold=timedelta(0))  # type: ignore[arg-type]
    opn.add_transfer(START + DAY)
    (found,) = settlements(opn, 0, 30)
    assert [item.order_id for item in found.items] == ["pay_0", "pay_2"]
    assert sum(item.net for item in found.items) == found.amount


def test_repeated_transfer_has_the_same_items_again(opn: OpnDouble) -> None:
    opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.repeat_transfer(opn.add_transfer(START + DAY), START + 2 * DAY)
    first, second = settlements(opn, 0, 30)
    assert first.items == second.items
    assert first.amount == second.amount == net_of(100_000)


def test_vat_that_was_rounded_up_is_read_as_it_is(opn: OpnDouble) -> None:
    opn.add_charge("pay_1", 31_000, START, fault="vat_rounded_up", hold=timedelta(0))
    opn.add_transfer(START + DAY)
    (item,) = settlements(opn, 0, 30)[0].items
    assert (item.fee, item.fee_vat, item.net) == (1_132, 80, 29_788)


@pytest.mark.parametrize(("amount", "fees"), FEES.items())
def test_double_rounds_as_the_published_examples(amount: int, fees: tuple[int, int]) -> None:
    assert fees_of(amount) == fees
    assert fees_of(5_000) == (183, 13)  # 182.50: half up, not half even


# Nothing but a complete list is an answer.


@pytest.mark.parametrize("path", ["/transfers", "/transactions", "/charges", "/refunds"])
@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (response(error("internal_error"), 500), "other"),
        (response(error("authentication_failure"), 401), "credentials"),
        (response(error("too_many_requests"), 429), "other"),
        (response(listing(total=1)), "other"),
        (response(listing({"id": "x"}, {"id": "x"})), "other"),
        (response(listing({"id": None})), "other"),
        (response({"object": "list", "data": "x", "total": 0}), "other"),
        (Reply(closes=True), "other"),
        (Reply(200, body=b"<html>"), "other"),
    ],
)
def test_incomplete_list_raises_inquiry_failed(opn: OpnDouble, path: str, reply: Reply, cause: str) -> None:
    charge = opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_refund("ref_1", charge, 1_000, START)
    opn.add_transfer(START + DAY)
    opn.scripts[path] = [reply]
    with pytest.raises(InquiryFailed) as failure:
        settlements(opn, 0, 30)
    assert failure.value.cause == cause


def test_list_that_ends_on_a_later_page_raises_inquiry_failed(opn: OpnDouble) -> None:
    opn.page_limit = 2
    add_days(opn, 20)
    opn.scripts["/transactions"] = [
        response(listing(*opn.transactions[:2], total=30)),
        response(error("x"), 503),
    ]
    with pytest.raises(InquiryFailed):
        settlements(opn, 0, 30)


@pytest.mark.parametrize("name", ["charges", "refunds"])
def test_entry_of_an_unknown_object_raises_inquiry_failed(opn: OpnDouble, name: str) -> None:
    charge = opn.add_charge("pay_1", 100_000, START, hold=timedelta(0))
    opn.add_refund("ref_1", charge, 1_000, START)
    opn.add_transfer(START + DAY)
    getattr(opn, name).clear()
    with pytest.raises(InquiryFailed):
        settlements(opn, 0, 30)


@pytest.mark.parametrize(("limit", "value"), [("MAX_PAGES", 2), ("SECONDS", -1.0)])
def test_settlements_beyond_the_page_limit_raise_inquiry_failed(
    opn: OpnDouble, limit: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omise_settlements, limit, value)
    add_days(opn, 20)
    with pytest.raises(InquiryFailed, match="too long or too slow"):
        settlements(opn, 0, 30)


@pytest.mark.slow
def test_late_answer_raises_inquiry_failed(opn: OpnDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banks.omise.READ_SECONDS", 0.2)
    opn.scripts["/transfers"] = [Reply(hangs=True)]
    with pytest.raises(InquiryFailed) as failure:
        settlements(opn, 0, 30)
    assert failure.value.cause == "timeout"


def test_refused_connection_raises_inquiry_failed() -> None:
    with pytest.raises(InquiryFailed) as failure:
        Omise("skey_test_1", "http://127.0.0.1:1").settlements(START, START + DAY, MemoryLedger())
    assert failure.value.cause == "unreachable"


@given(st.data())
@settings(max_examples=200)
def test_arbitrary_objects_raise_only_inquiry_failed(data: st.DataObject) -> None:
    opn = OpnDouble(0)
    opn.add_refund("ref_1", opn.add_charge("pay_1", 100_000, START, hold=timedelta(0)), 1_000, START)
    opn.add_transfer(START + DAY)
    rows = [opn.charges[0], opn.refunds[0], *opn.transactions, opn.transfers[0]]
    row = data.draw(st.sampled_from(rows))
    row.update(data.draw(st.dictionaries(st.sampled_from(list(row)), JUNK, min_size=1)))
    pages = {path: listing(*own) for path, own in opn.lists.items()}

    def get(path: str, _params: dict[str, Any]) -> Response:
        body = orjson.dumps(pages[path])
        return Response(200, orjson.loads(body), body)

    try:
        found = omise_settlements.read(get, START, START + 30 * DAY, MemoryLedger())
    except InquiryFailed:
        return
    assert all(isinstance(each, AcquirerTransfer) for each in found)
