"""The notification endpoint of a connected bank: secret path, networks, signature, stored messages."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
import time_machine
from django.test import Client

from config import asgi
from core import clock
from core.clock import BANGKOK
from core.thai import thaiqr
from merchants import bank_connections
from reconciliation.matching import intake
from reconciliation.models import BankNotification, BankTransaction, ConfirmationInquiry
from reconciliation.models.usual_notification import USUAL_NOTIFICATION
from tests.banks import fake_bbl, fake_scb
from tests.banks.fake_bbl import push, signed
from tests.banks.fake_scb import confirmation
from tests.config.asgi_messages import scope_of
from tests.conftest import Shop, new_client, open_shop
from tests.error_messages import check_error
from tests.merchants.connection_configs import BBL_CONFIG, BILLER_ID, SCB_CONFIG
from tests.test_secrets import Written, written

__all__ = ["written"]
pytestmark = pytest.mark.django_db


@dataclass
class ConnectedShop:
    """A live shop and its notification endpoint."""

    shop: Shop
    bank: str
    secret: str

    def post_notification(
        self, body: bytes, *, path: str = "", headers: dict[str, str] | None = None, **environ: Any
    ) -> Any:
        client: Client = new_client()
        where = path or f"/banks/{self.bank}/notifications/{self.secret}"
        return client.post(where, body, content_type="application/json", headers=headers or {}, **environ)

    def push(self, body: bytes, *, key: str = "bank") -> Any:
        """Send it with the signature of Bangkok Bank."""
        return self.post_notification(body, headers={"Signature": signed(body, now=clock.now(), key=key)})

    def status(self, code: dict[str, Any]) -> str:
        return str(self.shop.payment(code["payment_id"])["status"])


def connect_shop(config: bank_connections.ConnectionConfig, **changes: Any) -> ConnectedShop:
    shop = open_shop("Khao Soi", mode="live")
    config = replace(config, **changes)
    _, secret = bank_connections.connect(merchant_id=shop.merchant.id, config=config, now=clock.now())
    assert secret is not None
    return ConnectedShop(shop, config.bank, secret)


@pytest.fixture
def scb(db: None) -> ConnectedShop:
    return connect_shop(SCB_CONFIG, biller_id=fake_scb.BILLER)


@pytest.fixture
def bbl(db: None) -> ConnectedShop:
    return connect_shop(BBL_CONFIG)


def confirmed(code: dict[str, Any], **changes: Any) -> bytes:
    """The confirmation of Siam Commercial Bank that this code was paid."""
    reference1 = thaiqr.parse(code["qr_data"]).reference1
    at = clock.now().astimezone(BANGKOK).isoformat(timespec="seconds")
    return confirmation(**{"billPaymentRef1": reference1, "transactionDateandTime": at} | changes)


def pushed(code: dict[str, Any], **changes: Any) -> bytes:
    """The notification of Bangkok Bank that this code was paid."""
    at = clock.now().astimezone(BANGKOK)
    fields = {
        "reference1": thaiqr.parse(code["qr_data"]).reference1,
        "transDate": f"{at:%Y-%m-%d}",
        "transTime": f"{at:%H:%M:%S}",
    }
    return push(**fields | changes)


def test_unsigned_notification_is_stored_and_acknowledged_in_bank_format(scb: ConnectedShop) -> None:
    code = scb.shop.qr_code()
    response = scb.post_notification(confirmed(code))
    acknowledgement = {"resCode": "00", "resDesc": "success", "transactionId": "201907169lbqgPbt1Bl3oiA"}
    assert (response.status_code, response.json()) == (200, acknowledgement)
    assert (scb.status(code), BankNotification.objects.get().result) == ("pending", "unsigned")


@pytest.mark.slow
def test_words_of_a_usual_notification_stay() -> None:
    """Stored notifications cannot be read without them, and are never deleted."""
    assert zlib.adler32(USUAL_NOTIFICATION) == 4204021284


def test_signed_notification_completes_payment_and_is_acknowledged(bbl: ConnectedShop) -> None:
    code = bbl.shop.qr_code()
    response = bbl.push(pushed(code))
    acknowledgement = {"responseCode": "000", "responseMesg": "Success"}
    assert (response.status_code, response.json()) == (200, acknowledgement)
    assert bbl.status(code) == "succeeded"


def test_repeated_notification_gets_same_response_and_changes_nothing(scb: ConnectedShop) -> None:
    code = scb.shop.qr_code()
    body = confirmed(code)
    first, *again = [scb.post_notification(body) for _ in range(3)]
    assert {response.content for response in again} == {first.content}
    assert (ConfirmationInquiry.objects.count(), BankNotification.objects.count()) == (1, 3)


@pytest.mark.slow
def test_repeated_notification_is_recognised_by_notification_id(bbl: ConnectedShop) -> None:
    code = bbl.shop.qr_code()
    with time_machine.travel(clock.now(), tick=False):
        bbl.push(pushed(code))
        assert bbl.push(pushed(code, retryFlag="Y")).json()["responseCode"] == "000"
    assert BankTransaction.objects.count() == 1


@pytest.mark.slow
def test_reversal_notification_is_stored_beside_the_payment(bbl: ConnectedShop) -> None:
    code = bbl.shop.qr_code()
    with time_machine.travel(clock.now(), tick=False):
        bbl.push(pushed(code))
        bbl.push(pushed(code, txnType="D"))
    assert sorted(BankTransaction.objects.values_list("kind", flat=True)) == ["credit", "reversal"]
    assert len(set(BankTransaction.objects.values_list("bank_reference", flat=True))) == 1


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
    confirmation(payeeProxyId=BILLER_ID),
    confirmation(transactionDateandTime="9999-12-31T23:59:59-23:59"),
    confirmation(transactionDateandTime="9999-12-31T23:59:59+00:00"),
    confirmation(transactionDateandTime="2569-11-21T11:30:58+07:00"),
    push(),
]


@pytest.mark.parametrize("body", GARBAGE)
def test_unreadable_message_of_verified_sender_is_stored_for_staff(scb: ConnectedShop, body: bytes) -> None:
    response = scb.post_notification(body)
    assert (response.status_code, response.json()["resCode"]) == (200, "00")
    stored = BankNotification.objects.get()
    assert (stored.result, stored.body, stored.bank) == ("unreadable", body, "scb")
    assert not BankTransaction.objects.exists()


@pytest.mark.slow
def test_unreadable_signed_message_is_stored_for_staff(bbl: ConnectedShop) -> None:
    response = bbl.push(push(txnType="X"))
    assert (response.status_code, response.json()["responseCode"]) == (200, "000")
    assert BankNotification.objects.get().result == "unreadable"


@pytest.mark.parametrize("body", [b"", b"{}", push(amount="0.01"), b"\xff"])
@pytest.mark.parametrize("token", [None, "", "x.y.z", signed(push(), now=datetime(2020, 1, 1)), "stranger"])
@pytest.mark.slow
def test_notification_with_invalid_signature_is_refused_and_not_stored(
    bbl: ConnectedShop, body: bytes, token: str | None
) -> None:
    if token == "stranger":
        token = signed(push(), now=clock.now(), key="stranger")
    response = bbl.post_notification(body, headers={} if token is None else {"Signature": token})
    assert response.status_code == 401
    check_error(response.json(), "invalid_signature")
    assert not BankNotification.objects.exists()


@pytest.mark.slow
def test_signature_of_another_message_is_refused(bbl: ConnectedShop) -> None:
    code = bbl.shop.qr_code()
    token = signed(pushed(code, amount="1.00"), now=clock.now())
    assert bbl.post_notification(pushed(code), headers={"Signature": token}).status_code == 401
    assert bbl.status(code) == "pending"


def test_notification_for_another_biller_is_stored_for_staff(scb: ConnectedShop) -> None:
    other = connect_shop(SCB_CONFIG)
    code = other.shop.qr_code()
    assert scb.post_notification(confirmed(code, payeeProxyId=BILLER_ID)).status_code == 200
    assert (other.status(code), BankNotification.objects.get().result) == ("pending", "unreadable")


@pytest.mark.parametrize(
    "path",
    [
        "/banks/scb/notifications/bep_" + "0" * 43,
        "/banks/scb/notifications/x",
        "/banks/scb/notifications/%00",
        "/banks/scb/notifications/%FF%FE",
        "/banks/scb/notifications/" + "x" * 3000,
        "/banks/scb/notifications",
        "/banks/sandbox/notifications/bep_" + "0" * 43,
        "/banks/kbank/notifications/bep_" + "0" * 43,
    ],
)
def test_unknown_notification_url_is_404(scb: ConnectedShop, path: str) -> None:
    response = scb.post_notification(confirmed(scb.shop.qr_code()), path=path)
    name = path.split("/")[2]
    error = {"code": "bank_not_found", "message": f"No bank {name}.", "type": "not_found"}
    assert (response.status_code, response.json()["error"]) == (404, error)
    assert not BankNotification.objects.exists()


def test_notification_url_secret_of_another_bank_is_404(scb: ConnectedShop) -> None:
    body = confirmed(scb.shop.qr_code())
    for bank in ("bbl", "sandbox", "SCB"):
        assert (
            scb.post_notification(body, path=f"/banks/{bank}/notifications/{scb.secret}").status_code == 404
        )
    assert not BankNotification.objects.exists()


def test_former_notification_url_is_404_at_once(scb: ConnectedShop) -> None:
    config = replace(SCB_CONFIG, biller_id=fake_scb.BILLER)
    bank_connections.connect(
        merchant_id=scb.shop.merchant.id, config=config, now=clock.now(), renew_address=True
    )
    assert scb.post_notification(confirmed(scb.shop.qr_code())).status_code == 404


def test_notification_over_64_kb_is_refused(scb: ConnectedShop) -> None:
    response = scb.post_notification(confirmation(payerName="x" * 70_000))
    assert (response.status_code, response.json()["error"]["code"]) == (413, "request_too_large")
    assert not BankNotification.objects.exists()


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
def test_notification_from_other_network_is_refused(
    settings: Any, hops: int, environ: dict[str, Any], status: int
) -> None:
    settings.PROXY_HOPS = hops
    connected = connect_shop(SCB_CONFIG, callers=["203.0.113.0/24"])
    response = connected.post_notification(confirmation(payeeProxyId=BILLER_ID), **environ)
    assert response.status_code == status
    assert BankNotification.objects.count() == (1 if status == 200 else 0)
    if status == 403:
        check_error(response.json(), "caller_not_allowed")


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "options"])
def test_notification_endpoint_accepts_only_post(scb: ConnectedShop, method: str) -> None:
    response = getattr(new_client(), method)(f"/banks/scb/notifications/{scb.secret}")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(intake, "store", fail)
    yield


def test_notification_url_secret_is_not_logged(scb: ConnectedShop, written: Written) -> None:
    code = scb.shop.qr_code()
    for body in (confirmed(code), b"garbage", confirmation(payerName="x" * 70_000)):
        scb.post_notification(body)
    scb.post_notification(confirmed(code), path=f"/banks/bbl/notifications/{scb.secret}")
    assert "banks/<str:bank>/notifications/<str:secret>" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue()


@pytest.mark.usefixtures("broken")
def test_notification_url_secret_is_not_logged_with_internal_error(
    scb: ConnectedShop, written: Written
) -> None:
    response = scb.post_notification(confirmed(scb.shop.qr_code()))
    assert response.status_code == 500
    assert "the disk is full" in written.getvalue()
    assert "/banks/scb/notifications/bep_[redacted]" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue() + response.content.decode()


def test_notification_url_secret_is_not_logged_by_web_server(scb: ConnectedShop, written: Written) -> None:
    def handle(request: Any) -> Any:
        raise RuntimeError("not even started")

    request = asgi.ServiceRequest(scope_of("POST", f"/banks/scb/notifications/{scb.secret}"))
    with request.body_file:
        status, _, body = asgi.answer(handle, request)
    assert status == 500
    assert "not even started" in written.getvalue()
    assert scb.secret[5:] not in written.getvalue() + body.decode()


@pytest.mark.slow
def test_two_merchants_of_one_bank_have_own_notification_urls(scb: ConnectedShop) -> None:
    other = connect_shop(SCB_CONFIG)
    for connected, biller in ((scb, fake_scb.BILLER), (other, BILLER_ID)):
        code = connected.shop.qr_code()
        assert json.loads(confirmed(code, payeeProxyId=biller))["payeeProxyId"] == biller
        connected.post_notification(confirmed(code, payeeProxyId=biller, transactionId=f"of-{biller}"))
        inquiry = ConfirmationInquiry.objects.get(payment_id=code["payment_id"])
        assert (inquiry.merchant, inquiry.bank_reference) == (connected.shop.merchant, f"of-{biller}")


@pytest.mark.slow
def test_equal_biller_ids_at_two_banks_belong_to_two_merchants(bbl: ConnectedShop) -> None:
    other = connect_shop(SCB_CONFIG, biller_id=fake_bbl.BILLER)
    code = other.shop.qr_code()
    bbl.push(pushed(code))
    assert other.status(code) == "pending"
    assert BankTransaction.objects.get().match_result == "unmatched"
