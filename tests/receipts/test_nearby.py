"""Which payment money may be meant for: how references go wrong, and what is near enough to show."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import thaiqr
from payments.models import Payment
from receipts import nearby
from receipts.likeness import Likeness, compare, edits, pieces, spellings
from receipts.models import Receipt
from receipts.nearby import Near
from tests.conftest import BankCaller, Shop

OURS = "7K2M0Q9XSB41ZC8TGLI5"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (OURS, Likeness(60, "same reference")),
        (OURS.lower(), Likeness(55, "same reference in lower case or with other signs")),
        ("7K2M 0Q9X-SB41 ZC8T GLI5", Likeness(55, "same reference in lower case or with other signs")),
        ("7K2MOQ9XSB41ZC8TGLI5", Likeness(50, "reference differs in 1 character (O for 0)")),
        ("7K2MOQ9XSB4IZC8TGLI5", Likeness(50, "reference differs in 2 characters (O for 0, I for 1)")),
        ("7K2M0Q9X581ZC8TGLI5", None),  # three changes
        ("7K2M0Q9X5B41ZCBTGLI5", Likeness(50, "reference differs in 2 characters (5 for S, B for 8)")),
        ("7K2M0Q9XSB41ZC8TGLI7", Likeness(45, "reference differs in 1 character")),
        ("7K2M0Q9XSB41ZC8TGLI", Likeness(45, "reference differs in 1 character")),
        ("7K2M0Q9XSB41ZC8TGLI55", Likeness(45, "reference differs in 1 character")),
        ("7KM20Q9XSB41ZC8TGLI5", Likeness(35, "reference differs in 2 characters")),
        ("7K2MOQ9XSB41ZC8TGLI7", Likeness(35, "reference differs in 2 characters")),
        (OURS[:12], Likeness(40, "reference cut short to 12 characters")),
        (OURS[3:], Likeness(40, "reference cut short to 17 characters")),
        (OURS + "ABC", Likeness(40, "reference with 3 characters more")),
        (OURS[:5], None),
        ("", None),
        ("A" * 20, None),
        ("ส้มตำ", None),
    ],
)
def test_likeness_in_words(given: str, expected: Likeness | None) -> None:
    assert compare(given, OURS) == expected


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("", "", 0), ("A", "", 1), ("AB", "", 2), ("ABC", "", None), ("ABC", "ABC", 0), ("ABC", "ABD", 1),
        ("ABC", "BC", 1), ("ABC", "ACB", 2), ("ABCDEF", "ABXDEY", 2), ("ABCDEF", "BADCFE", None),
    ],
)  # fmt: skip
def test_edits_are_counted_up_to_two(one: str, other: str, count: int | None) -> None:
    assert edits(one, other) == edits(other, one) == count


def test_spellings_begin_with_what_was_told_and_are_bounded() -> None:
    assert spellings("ab-x") == ["ab-x", "ABX", "A8X"]
    assert spellings("") == []
    assert 50 < len(spellings("O0I1S5B8" * 4)) <= 200


@pytest.mark.parametrize("given", [OURS[:12], OURS.lower(), OURS[2:], "X" + OURS[:10] + "Y" + OURS[10:]])
def test_what_is_like_a_reference_shares_a_piece_with_it(given: str) -> None:
    assert any(piece in OURS for piece in pieces(given))


def told(bank: BankCaller, code: dict[str, Any], **changes: Any) -> Receipt:
    """The receipt of money that came for a code, changed."""
    notice = bank.notice(code, **changes)
    bank.post(notice)
    receipt: Receipt = Receipt.objects.get(bank_transaction_id=notice["transaction_id"])
    return receipt


def nearest(receipt: Receipt) -> list[Near]:
    return nearby.to([receipt])[receipt.id]


def reference(code: dict[str, Any]) -> str:
    return thaiqr.parse(code["qr_data"]).reference1 or ""


@pytest.fixture
def at_noon(noon: datetime) -> Any:
    with time_machine.travel(noon, tick=False) as clock:
        yield clock


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (str.lower, "same reference in lower case or with other signs"),
        (lambda text: f"{text[:10]} {text[10:]}", "same reference in lower case or with other signs"),
        (lambda text: text[:9] + ("A" if text[9] != "A" else "C") + text[10:], "differs in 1 character"),
        (lambda text: text[:-1], "differs in 1 character"),
        (lambda text: text[:12], "cut short to 12 characters"),
        (lambda text: text + "777", "with 3 characters more"),
    ],
)
def test_a_spoilt_reference_leads_to_its_payment(
    shop: Shop, bank: BankCaller, at_noon: Any, noon: datetime, spoil: Any, words: str
) -> None:
    shop.qr_code(amount=99_900)
    code = shop.qr_code()
    at_noon.move_to(noon + timedelta(minutes=2))
    near = nearest(told(bank, code, reference1=spoil(reference(code))))
    assert [each.payment.id for each in near] == [code["payment_id"]]
    assert near[0].words.startswith("same amount, code made 2 minutes before the money")
    assert words in near[0].words


@pytest.mark.django_db
def test_confusable_characters_are_found_however_old_the_code(
    shop: Shop, bank: BankCaller, at_noon: Any, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.references.ids.random_text", lambda length, alphabet="": OURS[:length])
    code = shop.qr_code()
    monkeypatch.undo()
    confused = reference(code).replace("0Q9XS", "OQ9X5")
    at_noon.move_to(noon + timedelta(days=40))
    (near,) = nearest(told(bank, code, reference1=confused))
    assert near.payment.id == code["payment_id"]
    assert (
        "code made 40 days before the money, reference differs in 2 characters (O for 0, 5 for S)"
        in near.words
    )


def test_the_same_amount_is_near_and_the_later_code_nearer(
    shop: Shop, bank: BankCaller, at_noon: Any, noon: datetime
) -> None:
    early, other = shop.qr_code(), shop.qr_code(amount=150_001)
    at_noon.move_to(noon + timedelta(minutes=50))
    late = shop.qr_code()
    at_noon.move_to(noon + timedelta(minutes=52))
    near = nearest(told(bank, late, reference1="NOBODYKNOWSTHIS00000"))
    assert [each.payment.id for each in near] == [late["payment_id"], early["payment_id"]]
    assert near[0].words == "same amount, code made 2 minutes before the money, another reference"
    assert other["payment_id"] not in [each.payment.id for each in near]


def test_of_codes_that_are_alike_the_one_made_about_then_is_nearest(
    shop: Shop, bank: BankCaller, at_noon: Any, noon: datetime
) -> None:
    made = []
    for minute in (7, 1, 4, 9, 2, 6, 3):
        at_noon.move_to(noon + timedelta(minutes=minute))
        made.append((minute, shop.qr_code()))
    at_noon.move_to(noon + timedelta(minutes=10))
    near = nearest(told(bank, made[0][1], reference1="NOBODYKNOWSTHIS00000"))
    latest = [code["payment_id"] for _, code in sorted(made, key=lambda each: -each[0])]
    assert [each.payment.id for each in near] == latest[: nearby.SHOWN]


def test_the_right_reference_beats_the_right_amount(shop: Shop, bank: BankCaller) -> None:
    meant = shop.qr_code(amount=150_100)
    shop.qr_code()
    near = nearest(told(bank, meant, satang=150_000))
    assert near[0].payment.id == meant["payment_id"]
    assert near[0].words.startswith("1.00 THB too little")
    assert near[0].words.endswith("same reference")


def test_money_paid_twice_is_near_to_what_nobody_has_paid(shop: Shop, bank: BankCaller) -> None:
    paid, unpaid = shop.qr_code(), shop.qr_code()
    bank.tell(paid)
    near = nearest(told(bank, paid))
    assert [(each.payment.id, each.is_unpaid) for each in near] == [
        (paid["payment_id"], False),
        (unpaid["payment_id"], True),
    ]


def test_another_biller_id_is_said(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    (near,) = nearest(told(bank, code, biller_id="099999999999999"))
    assert near.payment.id == code["payment_id"]
    assert near.words.endswith("same reference, another biller id")


def test_nothing_is_invented(shop: Shop, rival: Shop, bank: BankCaller, at_noon: Any, noon: datetime) -> None:
    """Neither a rival's code, nor one of weeks ago, nor a paid one, nor one made long after the money."""
    rival.qr_code()
    old = shop.qr_code()
    at_noon.move_to(noon + timedelta(days=8))
    bank.tell(shop.qr_code())
    receipt = told(bank, old, reference1="NOBODYKNOWSTHIS00000")
    at_noon.move_to(noon + timedelta(days=8, minutes=30))
    shop.qr_code()
    assert nearest(receipt) == []


def test_payments_of_another_bank_are_never_near(shop: Shop, bank: BankCaller) -> None:
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(mode="live", bank="scb")
    assert nearest(told(bank, shop.qr_code())) == []


def test_a_reversal_has_no_near_payment(shop: Shop, bank: BankCaller) -> None:
    receipt = told(bank, shop.qr_code(), type="reversal")
    assert nearby.to([receipt]) == {}


def test_any_number_of_receipts_costs_two_statements(
    shop: Shop, bank: BankCaller, django_assert_num_queries: Any
) -> None:
    for number in range(12):
        bank.tell(shop.qr_code(amount=10_000 + number % 3), reference1=f"NOBODYKNOWSTHIS{number:05}")
    receipts = list(Receipt.objects.all())
    with django_assert_num_queries(2):
        found = nearby.to(receipts)
    assert all(near.payment.amount == near.code.payment.amount for each in found.values() for near in each)
    assert {len(each) for each in found.values()} == {4}
    assert Payment.objects.count() == 12
