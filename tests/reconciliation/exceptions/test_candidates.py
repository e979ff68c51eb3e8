"""Candidates: similar references, and which payments are shown for held money."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.database import rows
from core.thai import thaiqr
from payments.models import Payment
from reconciliation.exceptions import candidates
from reconciliation.exceptions.candidates import Candidate, compare_references, spellings
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop

OURS = "7K2M0Q9XSB41ZC8TGLI5"


def test_similarity_explains_the_difference_between_references() -> None:
    for given, expected in [
        (OURS, (60, "same reference")),
        (OURS.lower(), (55, "same reference in lower case or with other signs")),
        ("7K2M 0Q9X-SB41 ZC8T GLI5", (55, "same reference in lower case or with other signs")),
        ("7K2MOQ9XSB41ZC8TGLI5", (50, "reference differs in 1 character (O for 0)")),
        ("7K2MOQ9XSB4IZC8TGLI5", (50, "reference differs in 2 characters (O for 0, I for 1)")),
        ("7K2M0Q9X581ZC8TGLI5", None),  # three changes
        ("7K2M0Q9X5B41ZCBTGLI5", (50, "reference differs in 2 characters (5 for S, B for 8)")),
        ("7K2M0Q9XSB41ZC8TGLI7", (45, "reference differs in 1 character")),
        ("7K2M0Q9XSB41ZC8TGLI", (45, "reference differs in 1 character")),
        ("7K2M0Q9XSB41ZC8TGLI55", (45, "reference differs in 1 character")),
        ("7KM20Q9XSB41ZC8TGLI5", (35, "reference differs in 2 characters")),
        ("7K2MOQ9XSB41ZC8TGLI7", (35, "reference differs in 2 characters")),
        (OURS[:12], (40, "reference cut short to 12 characters")),
        (OURS[3:], (40, "reference cut short to 17 characters")),
        (OURS + "ABC", (40, "reference with 3 characters more")),
        (OURS[:5], None),
        ("", None),
        ("A" * 20, None),
        ("ส้มตำ", None),
    ]:
        assert compare_references(given, OURS) == expected


def test_candidate_spellings_begin_with_the_reported_reference_and_are_limited() -> None:
    assert spellings("ab-x") == ["ab-x", "ABX", "A8X"]
    assert spellings("") == []
    assert len(spellings("o0I1S5B8" * 4)) == 200


def reported(bank: SandboxBankClient, code: dict[str, Any], **changes: Any) -> BankTransaction:
    """Return the bank transaction of a code, with changes."""
    notification = bank.notification(code, **changes)
    bank.post(notification)
    bank_transaction: BankTransaction = BankTransaction.objects.get(
        bank_reference=notification["transaction_id"]
    )
    return bank_transaction


def nearest(bank_transaction: BankTransaction) -> list[Candidate]:
    return candidates.find([bank_transaction])[bank_transaction.id]


def reference(code: dict[str, Any]) -> str:
    return thaiqr.parse(code["qr_data"]).reference1


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
def test_changed_reference_finds_the_payment_as_candidate(
    shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime, spoil: Any, words: str
) -> None:
    shop.qr_code(amount=99_900)
    code = shop.qr_code()
    at_noon.move_to(noon + timedelta(minutes=2))
    near = nearest(reported(bank, code, reference1=spoil(reference(code))))
    assert [each.payment.id for each in near] == [code["payment_id"]]
    assert near[0].explanation.startswith("same amount, code made 2 minutes before the money")
    assert words in near[0].explanation


def other(character: str) -> str:
    """Another character, which nobody takes for it."""
    return "A" if character != "A" else "C"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:12],
        str.lower,
        lambda text: text[2:],
        # Each of the others has only one third that is right: the last, the middle, the first.
        lambda text: "A" + text[:10] + "A" + text[10:],
        lambda text: other(text[0]) + text[1:19] + other(text[19]),
        lambda text: text[:9] + other(text[9]) + text[10:19] + other(text[19]),
    ],
)
def test_one_third_of_the_reference_is_enough_to_find_the_payment(
    shop: Shop, bank: SandboxBankClient, spoil: Any
) -> None:
    code = shop.qr_code()
    bank_transaction = reported(bank, code, reference1=spoil(reference(code)), satang=99)
    assert [each.payment.id for each in nearest(bank_transaction)] == [code["payment_id"]]


@pytest.mark.django_db
def test_confusable_characters_find_candidates_of_any_age(
    shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.thai.references.ids.random_text", lambda length, alphabet="": OURS[:length])
    code = shop.qr_code()
    monkeypatch.undo()
    confused = reference(code).replace("0Q9XS", "OQ9X5")
    at_noon.move_to(noon + timedelta(days=40))
    (near,) = nearest(reported(bank, code, reference1=confused))
    assert near.payment.id == code["payment_id"]
    assert (
        "code made 40 days before the money, reference differs in 2 characters (O for 0, 5 for S)"
        in near.explanation
    )


def test_same_amount_is_a_candidate_and_the_newer_qr_code_comes_first(
    shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime
) -> None:
    early, other = shop.qr_code(), shop.qr_code(amount=150_001)
    at_noon.move_to(noon + timedelta(minutes=50))
    late = shop.qr_code()
    at_noon.move_to(noon + timedelta(minutes=52))
    near = nearest(reported(bank, late, reference1="NOBODYKNOWSTHIS00000"))
    assert [each.payment.id for each in near] == [late["payment_id"], early["payment_id"]]
    assert near[0].explanation == "same amount, code made 2 minutes before the money, another reference"
    assert other["payment_id"] not in [each.payment.id for each in near]


def test_candidates_with_the_same_score_are_sorted_by_time(
    shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime
) -> None:
    made = []
    for minute in (7, 1, 4, 9, 2, 6, 3):
        at_noon.move_to(noon + timedelta(minutes=minute))
        made.append((minute, shop.qr_code()))
    at_noon.move_to(noon + timedelta(minutes=10))
    near = nearest(reported(bank, made[0][1], reference1="NOBODYKNOWSTHIS00000"))
    latest = [code["payment_id"] for _, code in sorted(made, key=lambda each: -each[0])]
    assert [each.payment.id for each in near] == latest[: candidates.MAX_CANDIDATES]


def test_same_reference_scores_higher_than_same_amount(shop: Shop, bank: SandboxBankClient) -> None:
    meant = shop.qr_code(amount=150_100)
    shop.qr_code()
    near = nearest(reported(bank, meant, satang=150_000))
    assert near[0].payment.id == meant["payment_id"]
    assert near[0].explanation.startswith("1.00 THB too little")
    assert near[0].explanation.endswith("same reference")


def test_money_paid_twice_has_unpaid_candidates(shop: Shop, bank: SandboxBankClient) -> None:
    paid, unpaid = shop.qr_code(), shop.qr_code()
    bank.notify(paid)
    near = nearest(reported(bank, paid))
    assert [(each.payment.id, each.is_unpaid) for each in near] == [
        (paid["payment_id"], False),
        (unpaid["payment_id"], True),
    ]


def test_candidate_explains_another_biller_id(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    (near,) = nearest(reported(bank, code, biller_id="099999999999999"))
    assert near.payment.id == code["payment_id"]
    assert near.explanation.endswith("same reference, another biller id")


def test_unrelated_payments_are_no_candidates(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime
) -> None:
    """Codes of other merchants, old codes, paid codes and much later codes are no candidates."""
    other_shop.qr_code()
    old = shop.qr_code()
    at_noon.move_to(noon + timedelta(days=8))
    bank.notify(shop.qr_code())
    bank_transaction = reported(bank, old, reference1="NOBODYKNOWSTHIS00000")
    at_noon.move_to(noon + timedelta(days=8, minutes=30))
    shop.qr_code()
    assert nearest(bank_transaction) == []


def test_code_that_was_made_after_the_report_is_no_candidate(
    shop: Shop, bank: SandboxBankClient, at_noon: Any, noon: datetime
) -> None:
    """The bank's clock is an hour ahead."""
    code = shop.qr_code()
    ahead = noon + timedelta(hours=1)
    bank_transaction = reported(bank, code, reference1="NOBODYKNOWSTHIS00000", paid_at=ahead)
    at_noon.move_to(noon + timedelta(minutes=30))
    shop.qr_code()
    assert [each.payment.id for each in nearest(bank_transaction)] == [code["payment_id"]]


def test_payments_of_another_bank_are_no_candidates(shop: Shop, bank: SandboxBankClient) -> None:
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(mode="live", bank="scb")
    assert nearest(reported(bank, shop.qr_code())) == []


def test_reversal_has_no_candidates(shop: Shop, bank: SandboxBankClient) -> None:
    bank_transaction = reported(bank, shop.qr_code(), type="reversal")
    assert candidates.find([bank_transaction]) == {}


@pytest.mark.slow
def test_candidates_of_many_bank_transactions_take_two_queries(
    shop: Shop, bank: SandboxBankClient, django_assert_num_queries: Any
) -> None:
    for number, code in enumerate([shop.qr_code(amount=10_000 + number % 3) for number in range(12)]):
        bank.notify(code, reference1=f"NOBODYKNOWSTHIS{number:05}")
    bank_transactions = list(BankTransaction.objects.all())
    with django_assert_num_queries(2):
        found = candidates.find(bank_transactions)
    assert all(near.payment.amount == near.code.payment.amount for each in found.values() for near in each)
    assert {len(each) for each in found.values()} == {4}
    assert Payment.objects.count() == 12


def test_newest_payments_of_each_status_are_read_in_order(shop: Shop, bank: SandboxBankClient) -> None:
    """No index has all payments of a merchant in order: then its whole history of them would be read."""
    bank_transaction = reported(bank, shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
    for each in ("seqscan", "bitmapscan"):  # the tables of the test are small
        rows.run(f"SET LOCAL enable_{each} = off", [])
    with CaptureQueriesContext(connection) as queries:
        candidates.find([bank_transaction])
    found = rows.run(f"EXPLAIN {queries[0]['sql']}", [])
    plan = "\n".join(line for (line,) in found.fetchall())
    assert re.search(r"Backward using payment_filtered .*\n *Index Cond: .*kind\.status", plan), plan
