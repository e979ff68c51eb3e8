"""Malformed and forged notifications of the sandbox bank: only signed ones are stored."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.test import Client
from hypothesis import HealthCheck, given, settings as effort, strategies as st

from core.http.responses import MAX_BODY
from reconciliation.models import BankNotification, BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.examples import examples
from tests.hostile_inputs import LEAK
from tests.reconciliation.builders import EXCEPTIONS_URL, exception_url, get_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
URL = "/banks/sandbox/notifications"
DEEP = 20_000


def post(
    bank: SandboxBankClient, body: bytes, signature: str | None = None, type: str = "application/json"
) -> Any:
    """Post raw bytes. The test client would encode text in the charset of the content type."""
    signed = bank.sign(body) if signature is None else signature
    return bank.http.generic("POST", URL, body, type, headers={"Sandbox-Bank-Signature": signed})


def stored_results(body: bytes) -> list[str]:
    """Check that all notifications are stored byte for byte, and return their results."""
    notifications = list(BankNotification.objects.order_by("received_at", "id"))
    assert all(notification.body == body for notification in notifications)
    return [notification.result for notification in notifications]


def valid_notification(shop: Shop, bank: SandboxBankClient, **changes: Any) -> dict[str, Any]:
    return bank.notification(shop.qr_code()) | changes


FIELDS = [
    "transaction_id", "type", "biller_id", "reference1", "reference2", "reference3", "amount", "currency",
    "paid_at", "payer_name", "payer_bank_code", "payer_account", "slip_reference",
]  # fmt: skip
WRONG_VALUES: list[Any] = [None, 0, 1.5, True, [], {}, ["credit"], "\x00", "x" * 1_000]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.slow
def test_notification_field_of_wrong_type_is_stored_as_unreadable(
    shop: Shop, bank: SandboxBankClient, name: str
) -> None:
    notification = valid_notification(shop, bank)
    for number, value in enumerate(WRONG_VALUES, start=1):
        answer = post(bank, json.dumps(notification | {name: value}).encode())
        assert (answer.status_code, answer.json()) == (200, {"status": "held"}), value
        results = BankNotification.objects.values_list("result", flat=True)
        assert list(results) == ["unreadable"] * number
    assert not BankTransaction.objects.exists()
    post(bank, json.dumps(notification).encode())
    assert BankTransaction.objects.get().match_result == "applied", "a later notification is applied"


def malformed_bodies(notification: dict[str, Any]) -> list[bytes]:
    whole = json.dumps(notification).encode()
    return [
        b"[]",
        b'{"transaction_id": "1"}',
        b"\xff\x00\xfe",
        b"\x00" * 100,
        whole + b"\x00",
        whole[:-1],
        whole + whole,
        b"\xef\xbb\xbf" + whole,
        json.dumps(notification).encode("utf-16"),
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


@pytest.mark.parametrize("which", range(len(malformed_bodies({}))))
@pytest.mark.slow
def test_malformed_notification_is_stored_byte_for_byte(
    shop: Shop, bank: SandboxBankClient, which: int
) -> None:
    body = malformed_bodies(valid_notification(shop, bank))[which]
    answer = post(bank, body)
    assert (answer.status_code, answer.json()) == (200, {"status": "held"})
    assert stored_results(body) == ["unreadable"]
    assert not BankTransaction.objects.exists()


def test_too_large_notification_is_refused(shop: Shop, bank: SandboxBankClient) -> None:
    for size in (MAX_BODY + 1, 10 * MAX_BODY):
        answer = post(bank, json.dumps(valid_notification(shop, bank)).encode().ljust(size))
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert not BankNotification.objects.exists()


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
def test_signed_notification_is_parsed_with_any_content_type(
    shop: Shop, bank: SandboxBankClient, type: str
) -> None:
    body = json.dumps(valid_notification(shop, bank)).encode()
    assert post(bank, body, type=type).json() == {"status": "received"}
    assert stored_results(body) == ["new"]
    assert BankTransaction.objects.get().match_result == "applied"


@pytest.mark.parametrize("type", ["", "application/json"])
def test_empty_notification_is_stored_only_if_signed(bank: SandboxBankClient, type: str) -> None:
    assert post(bank, b"", "", type).status_code == 401
    assert not BankNotification.objects.exists()
    assert post(bank, b"", type=type).json() == {"status": "held"}
    assert stored_results(b"") == ["unreadable"]


@pytest.mark.parametrize(("minutes", "answers"), [(4, 200), (10, 401), (24 * 60, 401), (-10, 401)])
def test_old_signature_is_refused(
    shop: Shop, bank: SandboxBankClient, noon: datetime, minutes: int, answers: int
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        body = json.dumps(valid_notification(shop, bank)).encode()
        signature = bank.sign(body)
        post(bank, body, signature)
        clock.shift(timedelta(minutes=minutes))
        assert post(bank, body, signature).status_code == answers
    assert stored_results(body) == (["new", "repeat"] if answers == 200 else ["new"])
    assert BankTransaction.objects.count() == 1


def test_signature_of_another_message_is_refused(
    shop: Shop, bank: SandboxBankClient, monkeypatch: Any
) -> None:
    notification = valid_notification(shop, bank)
    body, other_body = (
        json.dumps(notification | {"amount": amount}).encode() for amount in ("1500.00", "9999.00")
    )
    signature = bank.sign(body)
    at, seal = signature.split(",")
    later = f"t={int(at[2:]) + 1}"
    monkeypatch.setattr(settings, "SANDBOX_BANK_SECRET", "somebody else's")
    by_other_secret = bank.sign(other_body)
    monkeypatch.undo()
    forged = [
        "",
        "garbage",
        "t=99999999999,v1=" + "f" * 64,
        signature,
        by_other_secret,
        seal,
        at,
        f"{later},{seal}",
        f"{seal},{at}",
        signature + "0",
        f" {signature}",
    ]
    for forgery in [*forged, f"{signature}, {signature}", "t=1,v1=" + "0" * 9_000, "\u0e51" * 64]:
        answer = post(bank, other_body, forgery)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_signature"), forgery
    assert not BankNotification.objects.exists()
    assert post(bank, body, signature).json() == {"status": "received"}


@pytest.mark.parametrize(
    ("paid_at", "result"),
    [
        ("2000-01-02T00:00:00+07:00", "time_mismatch"),
        ("2199-12-31T23:59:59.999+07:00", "amount_mismatch"),
    ],
)
@pytest.mark.parametrize("reference", ["", "'; DROP TABLE payments_payment; --", "<script>alert(1)</script>"])
@pytest.mark.slow
def test_exception_page_opens_for_extreme_times_and_names(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, paid_at: str, result: str, reference: str
) -> None:
    extreme = {
        "paid_at": paid_at,
        "payer_name": reference,
        "reference2": reference,
        "amount": "9999999999.99",
    }
    post(bank, json.dumps(valid_notification(shop, bank, **extreme)).encode())
    bank_transaction = BankTransaction.objects.get()
    assert (bank_transaction.match_result, bank_transaction.amount) == (result, 999_999_999_999)
    for path in (EXCEPTIONS_URL, exception_url(bank_transaction.id)):
        page = get_page(admin_client, path)
        assert "<script>alert" not in page


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=10,
)


@effort(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    body=st.binary(max_size=300)
    | JSON.map(lambda fields: json.dumps(fields).encode())
    | st.dictionaries(st.sampled_from(FIELDS), JSON).map(
        lambda notification: json.dumps(notification).encode()
    )
)
@pytest.mark.slow
def test_any_signed_notification_is_stored_once_and_answered(bank: SandboxBankClient, body: bytes) -> None:
    before = BankNotification.objects.count()
    answer = post(bank, body)
    assert answer.status_code == 200
    assert not LEAK.search(answer.content.decode())
    assert BankNotification.objects.count() == before + 1
    assert BankNotification.objects.latest("received_at", "id").body == body
