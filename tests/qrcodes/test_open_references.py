"""A merchant can ask that a reference has one open code only."""

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from core import clock
from merchants import services
from merchants.models import Merchant
from payments.models import Payment
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.error_messages import check_error
from tests.reconciliation.builders import staff_client
from tests.staff_acts import acts_of_staff, run_act, send_act
from webhooks.models import Event

# A refused statement ends the transaction that other tests run in.
pytestmark = pytest.mark.django_db(transaction=True)

REFERENCE = "INV-7"


@pytest.fixture
def strict(shop: Shop) -> Shop:
    services.set_policy(shop.merchant.id, refuses_open_reference=True)
    return shop


def ask(shop: Shop, **fields: Any) -> Any:
    return shop.post(
        "/Thai/v1/qr-codes", {"amount": 150_000, "currency": "THB", "reference": REFERENCE} | fields
    )


def test_several_open_codes_of_a_reference_are_allowed_by_default(shop: Shop) -> None:
    assert [ask(shop).status_code for _ in range(2)] == [200, 200]


def test_second_open_code_of_a_reference_is_refused(strict: Shop) -> None:
    first = ask(strict).json()
    refused = ask(strict)
    error = refused.json()["error"]
    assert (refused.status_code, error["type"], error["param"]) == (400, "validation_error", "reference")
    check_error(refused.json(), "reference_in_use", id=first["qr_code_id"])
    assert Payment.objects.count() == Event.objects.count() == 1


@pytest.mark.slow
def test_other_references_other_merchants_and_codes_without_reference_are_not_refused(
    strict: Shop, other_shop: Shop
) -> None:
    services.set_policy(other_shop.merchant.id, refuses_open_reference=True)
    asked = [ask(strict), ask(strict, reference="INV-8"), ask(other_shop)]
    assert [answer.status_code for answer in asked] == [200] * 3
    assert strict.qr_code() and strict.qr_code()


@pytest.mark.slow
def test_reference_is_free_when_its_code_is_paid_or_expired(strict: Shop, bank: SandboxBankClient) -> None:
    bank.notify(ask(strict).json())
    second = ask(strict).json()
    strict.post(f"/v1/qr-codes/{second['qr_code_id']}/expire")
    assert ask(strict).status_code == 200


@pytest.mark.slow
def test_code_past_its_expiry_frees_its_reference_before_the_sweep(strict: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        first = ask(strict).json()
        now.move_to(noon + timedelta(minutes=14, seconds=59))
        assert ask(strict).status_code == 400
        now.move_to(noon + timedelta(minutes=15))
        assert ask(strict).status_code == 200
    stored = Payment.objects.get(pk=first["payment_id"])
    assert (stored.status, stored.expires_at) == ("expired", noon + timedelta(minutes=15))
    assert Event.objects.filter(type="payment.failed").count() == 1


@pytest.mark.slow
def test_repeated_request_gets_the_first_answer_and_a_refused_one_runs_again(strict: Shop) -> None:
    first = strict.post(
        "/v1/qr-codes", {"amount": 150_000, "currency": "THB", "reference": REFERENCE}, key="one"
    )
    again = strict.post(
        "/v1/qr-codes", {"amount": 150_000, "currency": "THB", "reference": REFERENCE}, key="one"
    )
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    body = {"amount": 150_000, "currency": "THB", "reference": REFERENCE}
    assert strict.post("/v1/qr-codes", body, key="two").status_code == 400
    assert strict.post("/v1/qr-codes", body | {"amount": 100}, key="two").status_code == 409
    strict.post(f"/v1/qr-codes/{first.json()['qr_code_id']}/expire")
    assert strict.post("/v1/qr-codes", body, key="two").status_code == 200


@pytest.mark.slow
def test_codes_from_before_the_setting_do_not_count(shop: Shop) -> None:
    ask(shop)
    services.set_policy(shop.merchant.id, refuses_open_reference=True)
    assert [ask(shop).status_code for _ in range(2)] == [200, 400]
    services.set_policy(shop.merchant.id, refuses_open_reference=False)
    assert ask(shop).status_code == 200


@pytest.mark.parametrize("is_overdue", [False, True])
@pytest.mark.slow
def test_of_codes_at_once_with_one_reference_only_one_is_made(is_overdue: bool) -> None:
    shop = open_shop("Somtam House")
    services.set_policy(shop.merchant.id, refuses_open_reference=True)
    if is_overdue:
        first = ask(shop).json()
        Payment.objects.filter(pk=first["payment_id"]).update(expires_at=clock.now())
    answers = run_concurrently(*[lambda: ask(shop)] * 8)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 7
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 400} == {
        "reference_in_use"
    }
    assert Payment.objects.filter(status="pending").count() == 1


def test_database_refuses_a_second_open_payment_of_a_reference(strict: Shop) -> None:
    first = Payment.objects.get(pk=ask(strict).json()["payment_id"])
    first.pk, first.qr_code_id = Payment.new_id(clock.now()), None
    with pytest.raises(IntegrityError, match="payment_open_reference_unique"), transaction.atomic():
        first.save(force_insert=True)
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        Payment.objects.update(holds_reference=False)


@pytest.mark.parametrize(
    ("slug", "is_on"), [("refuse-open-references", True), ("allow-open-references", False)]
)
@pytest.mark.slow
def test_staff_set_it_with_a_reason(shop: Shop, slug: str, is_on: bool) -> None:
    Merchant.objects.update(refuses_open_reference=not is_on)
    run_act(staff_client("somsri", "view_merchant", "set_open_references"), Merchant, shop.merchant.id, slug)
    assert Merchant.objects.get().refuses_open_reference is is_on
    record = acts_of_staff().get()
    assert (record.act, record.after) == ("open_references_changed", {"refuses_open_reference": is_on})


@pytest.mark.slow
def test_view_permission_cannot_set_it(shop: Shop) -> None:
    client = staff_client("malee", "view_merchant")
    assert send_act(client, Merchant, shop.merchant.id, "refuse-open-references").status_code == 403
    assert not Merchant.objects.get().refuses_open_reference


def test_command_sets_it(shop: Shop) -> None:
    for word, is_on in (("one", True), ("several", False)):
        out = io.StringIO()
        call_command("open_references", word, shop.merchant.id, stdout=out)
        assert out.getvalue().strip() == f"Open QR codes of one reference of {shop.merchant.id}: {word}."
        assert Merchant.objects.get().refuses_open_reference is is_on
    with pytest.raises(CommandError, match="No merchant"):
        call_command("open_references", "one", "mch_nobody")
