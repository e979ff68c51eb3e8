"""A payer asks for a new code after one expired or was declined: when, how often, and for what."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client

from core import clock
from core.http.rate_limits import RateLimit
from core.work import redis
from merchants import page_settings, services
from payments import services as payments
from payments.models import Payment
from qrcodes import payment_page
from qrcodes.models import QrCode
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from webhooks.models import Event

# A refused statement ends the transaction that other tests run in.
pytestmark = pytest.mark.django_db(transaction=True)

FIELDS: dict[str, Any] = {"reference": "INV-7", "metadata": {"table": "4"}, "client_name": "Somchai Jaidee"}
BUTTON = "Try again with a new code"


@pytest.fixture
def helpful(shop: Shop) -> Shop:
    page_settings.change(shop.merchant.pk, now=clock.now(), offers_new_code=True)
    return shop


@pytest.fixture
def declined(helpful: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    code = helpful.qr_code(**FIELDS)
    bank.notify(code, type="decline")
    return code


def page_of(code: dict[str, Any]) -> Any:
    return Client().get(f"/pay/{code['qr_code_id']}?lang=en")


def renew(code: dict[str, Any]) -> Any:
    return Client().post(f"/pay/{code['qr_code_id']}/new-code?lang=en")


def new_code_of(code: dict[str, Any]) -> str:
    """The id of the code to whose page the button leads."""
    answer = renew(code)
    assert answer.status_code == 303
    path: str = answer.headers["Location"]
    assert path.endswith("?lang=en")
    return path.removeprefix("/pay/").removesuffix("?lang=en")


def test_declined_code_gets_another_for_the_same_order(helpful: Shop, declined: dict[str, Any]) -> None:
    assert BUTTON in page_of(declined).content.decode()
    made = new_code_of(declined)
    assert made != declined["qr_code_id"]
    code = helpful.get(f"/v1/qr-codes/{made}").json()
    assert (code["status"], code["amount"], code["reference"]) == ("pending", 150_000, "INV-7")
    payment, before = Payment.objects.get(qr_code_id=made), Payment.objects.get(pk=declined["payment_id"])
    assert (payment.metadata, payment.client_name) == (FIELDS["metadata"], FIELDS["client_name"])
    assert payment.expires_at and before.expires_at
    assert payment.expires_at - payment.created_at == before.expires_at - before.created_at
    [event] = Event.objects.filter(subject_id=payment.pk)
    assert event.type == "payment.pending"


@pytest.mark.parametrize("stores_expiry", [True, False])
def test_expired_code_gets_another(helpful: Shop, stores_expiry: bool) -> None:
    services.set_policy(helpful.merchant.pk, refuses_open_reference=True)
    code = helpful.qr_code(expiry_minutes=15, **FIELDS)
    with time_machine.travel(clock.now() + timedelta(minutes=16), tick=False):
        if stores_expiry:
            payments.expire_overdue(now=clock.now(), since=clock.now() - timedelta(hours=1), limit=10)
        made = new_code_of(code)
        assert made != code["qr_code_id"]
        assert helpful.get(f"/v1/qr-codes/{made}").json()["status"] == "pending"
    assert Payment.objects.get(pk=code["payment_id"]).status == "expired"


def test_second_click_and_the_old_page_lead_to_the_same_new_code(declined: dict[str, Any]) -> None:
    made = new_code_of(declined)
    assert new_code_of(declined) == made
    answer = page_of(declined)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/pay/{made}?lang=en")
    assert Payment.objects.count() == 2


def test_clicks_at_once_make_one_code(declined: dict[str, Any]) -> None:
    def click() -> str:
        return new_code_of(declined)

    assert len(set(run_concurrently(*[click] * 4))) == 1
    assert Payment.objects.count() == 2


def _pay(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    code = shop.qr_code(**FIELDS)
    bank.notify(code)
    return code


def _end(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    code = shop.qr_code(**FIELDS)
    shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    return code


def _underpay(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    code = shop.qr_code(**FIELDS)
    bank.notify(code, satang=100_000)
    return code


def _decline_without_reference(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    code = shop.qr_code()
    bank.notify(code, type="decline")
    return code


def _leave_open(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    return shop.qr_code(**FIELDS)


@pytest.mark.parametrize("begin", [_pay, _end, _underpay, _decline_without_reference, _leave_open])
def test_other_codes_get_no_new_code(
    helpful: Shop, bank: SandboxBankClient, begin: Callable[[Shop, SandboxBankClient], dict[str, Any]]
) -> None:
    code = begin(helpful, bank)
    assert BUTTON not in page_of(code).content.decode()
    assert new_code_of(code) == code["qr_code_id"]
    assert Payment.objects.count() == 1


def test_shop_that_does_not_offer_it_is_asked_instead(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(**FIELDS)
    bank.notify(code, type="decline")
    page = page_of(code).content.decode()
    assert BUTTON not in page
    assert "Ask the shop for a new code." in page
    assert new_code_of(code) == code["qr_code_id"]
    assert Payment.objects.count() == 1


def test_other_open_code_of_the_reference_keeps_it(helpful: Shop, declined: dict[str, Any]) -> None:
    services.set_policy(helpful.merchant.pk, refuses_open_reference=True)
    helpful.qr_code(**FIELDS)
    assert new_code_of(declined) == declined["qr_code_id"]
    assert Payment.objects.count() == 2


def test_order_that_was_paid_by_another_code_gets_no_new_one(
    helpful: Shop, declined: dict[str, Any], bank: SandboxBankClient
) -> None:
    other_order = helpful.qr_code(reference="INV-8")
    bank.notify(other_order)
    assert BUTTON in page_of(declined).content.decode()
    bank.notify(helpful.qr_code(**FIELDS))
    page = page_of(declined).content.decode()
    assert BUTTON not in page
    assert "Ask the shop for a new code." in page
    assert new_code_of(declined) == declined["qr_code_id"]
    assert not QrCode.objects.filter(replaces__isnull=False).exists()


def test_old_address_makes_no_code_a_week_after_the_first_one(helpful: Shop) -> None:
    """However often payers made another one meanwhile. The database refuses it too."""
    code, began = helpful.qr_code(expiry_minutes=15, **FIELDS), clock.now()
    for day in (3, 6):
        with time_machine.travel(began + timedelta(days=day), tick=False):
            code = {"qr_code_id": new_code_of(code)}
    with time_machine.travel(began + timedelta(days=7), tick=False):
        page = page_of(code).content.decode()
        assert BUTTON not in page
        assert "Ask the shop for a new code." in page
        assert new_code_of(code) == code["qr_code_id"]
        assert Payment.objects.count() == 3
        payments.expire_overdue(now=clock.now(), since=began, limit=10)
        other = QrCode.objects.get(pk=helpful.qr_code(**FIELDS)["payment_id"])
        with pytest.raises(IntegrityError, match="cannot be replaced"), transaction.atomic():
            _insert_copy(helpful, other, code["qr_code_id"].replace("qr_", "pay_"))


def test_only_a_form_makes_a_code(declined: dict[str, Any]) -> None:
    answer = Client().get(f"/pay/{declined['qr_code_id']}/new-code")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/pay/{declined['qr_code_id']}")
    assert Payment.objects.count() == 1
    assert renew({"qr_code_id": "qr_000000000000000000000000000"}).status_code == 404


def test_network_that_asks_too_often_waits(declined: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payment_page, "RENEWAL_RATE", RateLimit(per_second=0.1, burst=1))
    redis.try_call(lambda client: client.delete("rate:payment-renewal:203.0.113.9"))
    path = f"/pay/{declined['qr_code_id']}/new-code"
    answers = [Client(REMOTE_ADDR="203.0.113.9").post(path) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 429]
    assert int(answers[1].headers["Retry-After"]) >= 1


def test_database_refuses_a_code_in_the_place_of_another_one(
    helpful: Shop, other_shop: Shop, declined: dict[str, Any], bank: SandboxBankClient
) -> None:
    """It is paid, of another merchant, of another order, replaced already, or its order is paid."""
    new = QrCode.objects.get(pk=new_code_of(declined).replace("qr_", "pay_"))
    with pytest.raises(IntegrityError, match="qr_code_replaced_once"), transaction.atomic():
        _insert_copy(helpful, new, declined["payment_id"])
    rows = {
        "paid": _pay(helpful, bank),
        "open": helpful.qr_code(**FIELDS),
        "other": other_shop.qr_code(**FIELDS),
        "order": helpful.qr_code(reference="INV-8"),
    }
    bank.notify(rows["order"], type="decline")
    for ended in rows.values():
        with pytest.raises(IntegrityError, match="cannot be replaced"), transaction.atomic():
            _insert_copy(helpful, new, ended["payment_id"])
    late = helpful.qr_code(**FIELDS)
    bank.notify(late, type="decline")
    bank.notify(helpful.qr_code(**FIELDS))
    with pytest.raises(IntegrityError, match="cannot be replaced"), transaction.atomic():
        _insert_copy(helpful, new, late["payment_id"])


def _insert_copy(shop: Shop, new: QrCode, replaces: str) -> None:
    payment = Payment.objects.get(pk=new.pk)
    payment.pk = Payment.new_id(clock.now())
    payment.qr_code_id = payment.pk.replace("pay_", "qr_")
    payment.created_at = payment.updated_at = clock.now()
    payment._state.adding = True
    payment.save(force_insert=True)
    QrCode.objects.create(
        merchant=shop.merchant,
        payment=payment,
        replaces_id=replaces,
        bank=new.bank,
        biller_id=new.biller_id,
        reference1=payment.pk[-20:],
        qr_data=json.dumps(payment.pk),
        created_at=clock.now(),
    )
