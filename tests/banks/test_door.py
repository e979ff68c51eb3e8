"""The door of a linked bank: a secret path, its networks, its signature; and what comes through it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
import time_machine
from django.test import Client

from config import bridge
from core import clock, thaiqr
from core.clock import BANGKOK
from merchants import links
from receipts import inbox
from receipts.models import ConfirmationInquiry, Notice, Receipt
from tests.banks import bbl_stand_in, scb_stand_in
from tests.banks.bbl_stand_in import push, signed
from tests.banks.scb_stand_in import confirmation
from tests.conftest import Shop, new_client, open_shop
from tests.merchants.cast import BBL, BILLER, TERMS
from tests.test_secrets import Written, written

__all__ = ["written"]
pytestmark = pytest.mark.django_db


@dataclass
class Linked:
    """A live shop and the door at which its bank knocks."""

    shop: Shop
    bank: str
    secret: str

    def knock(
        self, body: bytes, *, path: str = "", headers: dict[str, str] | None = None, **environ: Any
    ) -> Any:
        client: Client = new_client()
        where = path or f"/banks/{self.bank}/notices/{self.secret}"
        return client.post(where, body, content_type="application/json", headers=headers or {}, **environ)

    def push(self, body: bytes, *, key: str = "bank") -> Any:
        """As Bangkok Bank does, which signs."""
        return self.knock(body, headers={"Signature": signed(body, now=clock.now(), key=key)})

    def status(self, code: dict[str, Any]) -> str:
        return str(self.shop.payment(code["payment_id"])["status"])


def linked(terms: links.Terms, **changes: Any) -> Linked:
    shop = open_shop("Khao Soi", mode="live")
    terms = replace(terms, **changes)
    _, secret = links.connect(merchant_id=shop.merchant.id, terms=terms, now=clock.now())
    assert secret is not None
    return Linked(shop, terms.bank, secret)


@pytest.fixture
def scb(db: None) -> Linked:
    return linked(TERMS, biller_id=scb_stand_in.BILLER)


@pytest.fixture
def bbl(db: None) -> Linked:
    return linked(BBL)


def confirmed(code: dict[str, Any], **changes: Any) -> bytes:
    """What Siam Commercial Bank says when this code was paid."""
    reference1 = thaiqr.parse(code["qr_data"]).reference1
    at = clock.now().astimezone(BANGKOK).isoformat(timespec="seconds")
    return confirmation(**{"billPaymentRef1": reference1, "transactionDateandTime": at} | changes)


def pushed(code: dict[str, Any], **changes: Any) -> bytes:
    """What Bangkok Bank says when this code was paid."""
    at = clock.now().astimezone(BANGKOK)
    told = {
        "reference1": thaiqr.parse(code["qr_data"]).reference1,
        "transDate": f"{at:%Y-%m-%d}",
        "transTime": f"{at:%H:%M:%S}",
    }
    return push(**told | changes)


def test_an_unsigned_confirmation_is_kept_and_answered_in_the_banks_words(scb: Linked) -> None:
    code = scb.shop.qr_code()
    answer = scb.knock(confirmed(code))
    assert (answer.status_code, answer.json()) == (
        200,
        {"resCode": "00", "resDesc": "success", "transactionId": "201907169lbqgPbt1Bl3oiA"},
    )
    assert (scb.status(code), Notice.objects.get().verdict) == ("pending", "unsigned")


def test_a_push_pays_the_code_and_is_answered_in_the_banks_words(bbl: Linked) -> None:
    code = bbl.shop.qr_code()
    answer = bbl.push(pushed(code))
    assert (answer.status_code, answer.json()) == (200, {"responseCode": "000", "responseMesg": "Success"})
    assert bbl.status(code) == "succeeded"


def test_repeats_get_the_same_answer_and_change_nothing(scb: Linked) -> None:
    code = scb.shop.qr_code()
    body = confirmed(code)
    first, *again = [scb.knock(body) for _ in range(3)]
    assert {answer.content for answer in again} == {first.content}
    assert (ConfirmationInquiry.objects.count(), Notice.objects.count()) == (1, 3)


def test_a_push_that_is_sent_again_is_known_by_its_id(bbl: Linked) -> None:
    code = bbl.shop.qr_code()
    with time_machine.travel(clock.now(), tick=False):
        bbl.push(pushed(code))
        assert bbl.push(pushed(code, retryFlag="Y")).json()["responseCode"] == "000"
    assert Receipt.objects.count() == 1


def test_a_cancelled_payment_is_kept_beside_the_payment(bbl: Linked) -> None:
    code = bbl.shop.qr_code()
    with time_machine.travel(clock.now(), tick=False):
        bbl.push(pushed(code))
        bbl.push(pushed(code, txnType="D"))
    assert sorted(Receipt.objects.values_list("kind", flat=True)) == ["credit", "reversal"]
    assert len(set(Receipt.objects.values_list("bank_transaction_id", flat=True))) == 1


GARBAGE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b"{" * 5000,
    b'{"amount": 1e999}',
    b'{"amount": 1e-99999999999999999999}',
    b'{"of no concern": 0e99999999999999999999}',
    b'{"transactionId": "\\u0000"}',
    b'{"transactionId": "\\ud800"}',
    confirmation(amount="0.00"),
    confirmation(amount=10**30),
    confirmation(payeeProxyId=BILLER),
    confirmation(transactionDateandTime="9999-12-31T23:59:59-23:59"),
    confirmation(transactionDateandTime="9999-12-31T23:59:59+00:00"),
    confirmation(transactionDateandTime="2569-11-21T11:30:58+07:00"),
    push(),
]


@pytest.mark.parametrize("body", GARBAGE)
def test_what_the_right_sender_says_unreadably_is_parked(scb: Linked, body: bytes) -> None:
    answer = scb.knock(body)
    assert (answer.status_code, answer.json()["resCode"]) == (200, "00")
    kept = Notice.objects.get()
    assert (kept.verdict, kept.body, kept.bank) == ("unreadable", body, "scb")
    assert not Receipt.objects.exists()


def test_a_signed_message_that_is_unreadable_is_parked(bbl: Linked) -> None:
    answer = bbl.push(push(txnType="X"))
    assert (answer.status_code, answer.json()["responseCode"]) == (200, "000")
    assert Notice.objects.get().verdict == "unreadable"


@pytest.mark.parametrize("body", [b"", b"{}", push(amount="0.01"), b"\xff"])
@pytest.mark.parametrize("token", [None, "", "x.y.z", signed(push(), now=datetime(2020, 1, 1)), "stranger"])
def test_what_the_bank_did_not_sign_is_refused_and_not_kept(
    bbl: Linked, body: bytes, token: str | None
) -> None:
    if token == "stranger":
        token = signed(push(), now=clock.now(), key="stranger")
    answer = bbl.knock(body, headers={} if token is None else {"Signature": token})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_signature")
    assert not Notice.objects.exists()


def test_a_signature_for_one_message_does_not_carry_another(bbl: Linked) -> None:
    code = bbl.shop.qr_code()
    token = signed(pushed(code, amount="1.00"), now=clock.now())
    assert bbl.knock(pushed(code), headers={"Signature": token}).status_code == 401
    assert bbl.status(code) == "pending"


def test_money_for_another_shop_is_parked_at_this_door(scb: Linked) -> None:
    other = linked(TERMS)
    code = other.shop.qr_code()
    assert scb.knock(confirmed(code, payeeProxyId=BILLER)).status_code == 200
    assert (other.status(code), Notice.objects.get().verdict) == ("pending", "unreadable")


@pytest.mark.parametrize(
    "path",
    [
        "/banks/scb/notices/door_" + "0" * 43,
        "/banks/scb/notices/x",
        "/banks/scb/notices/%00",
        "/banks/scb/notices/%FF%FE",
        "/banks/scb/notices/" + "x" * 3000,
        "/banks/scb/notices",
        "/banks/sandbox/notices/door_" + "0" * 43,
        "/banks/kbank/notices/door_" + "0" * 43,
    ],
)
def test_a_door_that_is_not_there_does_not_say_why(scb: Linked, path: str) -> None:
    answer = scb.knock(confirmed(scb.shop.qr_code()), path=path)
    name = path.split("/")[2]
    assert (answer.status_code, answer.json()["error"]) == (
        404,
        {"code": "bank_not_found", "message": f"No bank {name}.", "type": "not_found"},
    )
    assert not Notice.objects.exists()


def test_a_secret_opens_only_the_door_of_its_bank(scb: Linked) -> None:
    body = confirmed(scb.shop.qr_code())
    for bank in ("bbl", "sandbox", "SCB"):
        assert scb.knock(body, path=f"/banks/{bank}/notices/{scb.secret}").status_code == 404
    assert not Notice.objects.exists()


def test_an_old_door_is_closed_at_once(scb: Linked) -> None:
    terms = replace(TERMS, biller_id=scb_stand_in.BILLER)
    links.connect(merchant_id=scb.shop.merchant.id, terms=terms, now=clock.now(), renew_door=True)
    assert scb.knock(confirmed(scb.shop.qr_code())).status_code == 404


def test_a_message_beyond_64_kb_is_refused_before_it_is_read(scb: Linked) -> None:
    answer = scb.knock(confirmation(payerName="x" * 70_000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    ("hops", "environ", "status"),
    [
        (0, {"REMOTE_ADDR": "203.0.113.7"}, 200),
        (0, {"REMOTE_ADDR": "198.51.100.1"}, 403),
        (0, {"REMOTE_ADDR": "198.51.100.1", "HTTP_X_FORWARDED_FOR": "203.0.113.7"}, 403),
        (1, {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.7"}, 200),
        (1, {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.7, 198.51.100.1"}, 403),
        (1, {"REMOTE_ADDR": "203.0.113.7"}, 403),
        (1, {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "unknown"}, 403),
        (2, {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "1.1.1.1, 203.0.113.7, 10.0.0.2"}, 200),
        (2, {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.7"}, 403),
    ],
)
def test_only_the_banks_networks_come_in(
    settings: Any, hops: int, environ: dict[str, Any], status: int
) -> None:
    settings.PROXY_HOPS = hops
    door = linked(TERMS, callers=["203.0.113.0/24"])
    answer = door.knock(confirmation(payeeProxyId=BILLER), **environ)
    assert answer.status_code == status
    assert Notice.objects.count() == (1 if status == 200 else 0)
    if status == 403:
        assert answer.json()["error"]["code"] == "caller_not_allowed"


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options"])
def test_a_door_is_only_knocked_at(scb: Linked, method: str) -> None:
    answer = getattr(new_client(), method)(f"/banks/scb/notices/{scb.secret}")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(inbox, "keep", fail)
    yield


def test_no_log_line_tells_the_secret(scb: Linked, written: Written) -> None:
    code = scb.shop.qr_code()
    for body in (confirmed(code), b"garbage", confirmation(payerName="x" * 70_000)):
        scb.knock(body)
    scb.knock(confirmed(code), path=f"/banks/bbl/notices/{scb.secret}")
    assert "banks/<str:bank>/notices/<str:secret>" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue()


@pytest.mark.usefixtures("broken")
def test_a_fault_behind_the_door_does_not_tell_it_either(scb: Linked, written: Written) -> None:
    answer = scb.knock(confirmed(scb.shop.qr_code()))
    assert answer.status_code == 500
    assert "the disk is full" in written.getvalue()
    assert "/banks/scb/notices/door_[redacted]" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue() + answer.content.decode()


def test_nor_does_the_server_in_front_of_the_application(scb: Linked, written: Written) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        raise RuntimeError("not even started")

    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": f"/banks/scb/notices/{scb.secret}"}
    status, _, body = bridge.answer_of(application, environ)
    assert status == 500
    assert "not even started" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue() + body.decode()


def test_two_shops_of_one_bank_have_doors_of_their_own(scb: Linked) -> None:
    other = linked(TERMS)
    for door, biller in ((scb, scb_stand_in.BILLER), (other, BILLER)):
        code = door.shop.qr_code()
        assert json.loads(confirmed(code, payeeProxyId=biller))["payeeProxyId"] == biller
        door.knock(confirmed(code, payeeProxyId=biller, transactionId=f"of-{biller}"))
        asked = ConfirmationInquiry.objects.get(payment_id=code["payment_id"])
        assert (asked.merchant, asked.bank_transaction_id) == (door.shop.merchant, f"of-{biller}")


def test_the_same_biller_at_two_banks_is_two_shops(bbl: Linked) -> None:
    other = linked(TERMS, biller_id=bbl_stand_in.BILLER)
    code = other.shop.qr_code()
    bbl.push(pushed(code))
    assert other.status(code) == "pending"
    assert Receipt.objects.get().outcome == "unmatched"
