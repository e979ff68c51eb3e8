"""Bad words at the sandbox bank's door: what it signed is kept, whatever it says; what it did not is not."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from core.http import MAX_BODY
from receipts.models import Notice, Receipt
from tests.bad_inputs import LEAK
from tests.conftest import BankCaller, Shop
from tests.receipts.staff import LIST, page_of, read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
DOOR = "/banks/sandbox/notices"
DEEP = 20_000


def knock(bank: BankCaller, body: bytes, signature: str | None = None, type: str = "application/json") -> Any:
    """The bytes as they are: the client would write text in the charset of its type."""
    signed = bank.sign(body) if signature is None else signature
    return bank.http.generic("POST", DOOR, body, type, headers={"Sandbox-Bank-Signature": signed})


def kept(body: bytes) -> list[str]:
    """The verdicts on all messages; each was kept byte for byte."""
    notices = list(Notice.objects.order_by("received_at", "id"))
    assert all(notice.body == body for notice in notices)
    return [notice.verdict for notice in notices]


def good(shop: Shop, bank: BankCaller, **changes: Any) -> dict[str, Any]:
    return bank.notice(shop.qr_code()) | changes


FIELDS = [
    "transaction_id", "type", "biller_id", "reference1", "reference2", "reference3", "amount", "currency",
    "paid_at", "payer_name", "payer_bank_code", "payer_account", "slip_reference",
]  # fmt: skip
WRONG: list[Any] = [None, 0, 1.5, True, [], {}, ["credit"], "\x00", "x" * 1_000]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_another_kind_is_parked(shop: Shop, bank: BankCaller, name: str) -> None:
    told = good(shop, bank)
    for number, value in enumerate(WRONG, start=1):
        answer = knock(bank, json.dumps(told | {name: value}).encode())
        assert (answer.status_code, answer.json()) == (200, {"status": "parked"}), value
        assert Notice.objects.filter(verdict="unreadable").count() == Notice.objects.count() == number
    assert not Receipt.objects.exists()
    knock(bank, json.dumps(told).encode())
    assert Receipt.objects.get().outcome == "applied", "and what follows is heard"


def broken(told: dict[str, Any]) -> list[bytes]:
    whole = json.dumps(told).encode()
    return [
        b"\x00" * 100,
        whole + b"\x00",
        whole[:-1],
        whole + whole,
        b"\xef\xbb\xbf" + whole,
        json.dumps(told).encode("utf-16"),
        whole.replace(b"{", b"[", 1),
        whole[:-1] + b', "amount": "0.01"}',
        whole[:-1] + b', "amount": NaN}',
        whole[:-1] + b', "extra": 1e999}',
        whole[:-1] + b', "extra": ' + b"9" * 5_000 + b"}",
        whole[:-1] + b', "extra": "\\ud800"}',
        whole[:-1] + b', "extra": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        whole[:-1] + b', "extra": ' + b'{"a":' * (DEEP // 4) + b"1" + b"}" * (DEEP // 4) + b"}",
        b"[" * MAX_BODY,
        b'"' + b"\\" * (MAX_BODY - 1),
        b"x" * MAX_BODY,
    ]


@pytest.mark.parametrize("which", range(len(broken({}))))
def test_what_is_broken_is_parked_as_it_came(shop: Shop, bank: BankCaller, which: int) -> None:
    body = broken(good(shop, bank))[which]
    answer = knock(bank, body)
    assert (answer.status_code, answer.json()) == (200, {"status": "parked"})
    assert kept(body) == ["unreadable"]
    assert not Receipt.objects.exists()


def test_more_than_any_bank_has_to_say_is_refused_unread(shop: Shop, bank: BankCaller) -> None:
    for size in (MAX_BODY + 1, 10 * MAX_BODY):
        answer = knock(bank, json.dumps(good(shop, bank)).encode().ljust(size))
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    "type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json; charset=nobody-knows",
        ";;;=",
        "x" * 500,
    ],
)
def test_what_the_bank_signed_is_read_whatever_it_calls_it(shop: Shop, bank: BankCaller, type: str) -> None:
    body = json.dumps(good(shop, bank)).encode()
    assert knock(bank, body, type=type).json() == {"status": "received"}
    assert kept(body) == ["new"]
    assert Receipt.objects.get().outcome == "applied"


@pytest.mark.parametrize("type", ["", "application/json"])
def test_nothing_signed_is_parked_and_nothing_unsigned_is_refused(bank: BankCaller, type: str) -> None:
    assert knock(bank, b"", "", type).status_code == 401
    assert not Notice.objects.exists()
    assert knock(bank, b"", type=type).json() == {"status": "parked"}
    assert kept(b"") == ["unreadable"]


@pytest.mark.parametrize(("minutes", "answers"), [(4, 200), (10, 401), (24 * 60, 401), (-10, 401)])
def test_a_message_may_be_replayed_only_while_it_is_fresh(
    shop: Shop, bank: BankCaller, noon: datetime, minutes: int, answers: int
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        body = json.dumps(good(shop, bank)).encode()
        signature = bank.sign(body)
        knock(bank, body, signature)
        clock.shift(timedelta(minutes=minutes))
        assert knock(bank, body, signature).status_code == answers
    assert kept(body) == (["new", "repeat"] if answers == 200 else ["new"])
    assert Receipt.objects.count() == 1


def test_a_signature_carries_one_message_only(shop: Shop, bank: BankCaller, monkeypatch: Any) -> None:
    told = good(shop, bank)
    body, richer = (json.dumps(told | {"amount": amount}).encode() for amount in ("1500.00", "9999.00"))
    signature = bank.sign(body)
    at, seal = signature.split(",")
    later = f"t={int(at[2:]) + 1}"
    monkeypatch.setattr(settings, "SANDBOX_BANK_SECRET", "somebody else's")
    strange = bank.sign(richer)
    monkeypatch.undo()
    forged = [
        signature,
        strange,
        seal,
        at,
        f"{later},{seal}",
        f"{seal},{at}",
        signature + "0",
        f" {signature}",
    ]
    for forgery in [*forged, f"{signature}, {signature}", "t=1,v1=" + "0" * 9_000, "\u0e51" * 64]:
        answer = knock(bank, richer, forgery)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_signature"), forgery
    assert not Notice.objects.exists()
    assert knock(bank, body, signature).json() == {"status": "received"}


@pytest.mark.parametrize("paid_at", ["0001-01-02T00:00:00+07:00", "9999-12-31T23:59:59.999+07:00"])
@pytest.mark.parametrize("reference", ["", "'; DROP TABLE receipts_receipt; --", "<script>alert(1)</script>"])
def test_money_of_any_time_under_any_name_waits_and_its_page_opens(
    shop: Shop, bank: BankCaller, admin_client: Client, paid_at: str, reference: str
) -> None:
    odd = {"paid_at": paid_at, "payer_name": reference, "reference2": reference, "amount": "9999999999.99"}
    knock(bank, json.dumps(good(shop, bank, **odd)).encode())
    receipt = Receipt.objects.get()
    assert (receipt.outcome, receipt.amount) == ("amount_mismatch", 999_999_999_999)
    for path in (LIST, page_of(receipt.id)):
        page = read(admin_client, path)
        assert "<script>alert" not in page


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=10,
)


@effort(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    body=st.binary(max_size=300)
    | JSON.map(lambda told: json.dumps(told).encode())
    | st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda told: json.dumps(told).encode())
)
def test_whatever_the_bank_signs_is_kept_once_and_answered(bank: BankCaller, body: bytes) -> None:
    before = Notice.objects.count()
    answer = knock(bank, body)
    assert answer.status_code == 200
    assert not LEAK.search(answer.content.decode())
    assert Notice.objects.count() == before + 1
    assert Notice.objects.latest("received_at", "id").body == body
