"""The till: who may use it, its codes, the money that it shows, and that nothing of others is among it."""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.people.roles import ShopRole
from core import clock
from core.http.rate_limits import RateLimit
from merchants.models import Merchant
from payments.models import Payment, PaymentQuerySet
from shop.till import views
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.shop.people import person_of
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
PAGE = "/shop/till"
READS, WRITES = [PAGE, f"{PAGE}/manifest", f"{PAGE}/state"], [f"{PAGE}/codes", f"{PAGE}/slip"]
ALLOWED = {ShopRole.OWNER, ShopRole.MANAGER, ShopRole.CASHIER}


@pytest.fixture
def cashier(shop: Shop) -> Client:
    return person_of(shop, ShopRole.CASHIER)


def make(client: Client, amount: int = 10_025, key: str = "key-1", **fields: Any) -> Any:
    body = {"amount": amount, "currency": "THB", "metadata": {"till": "Counter 1"}} | fields
    headers = {"Idempotency-Key": key}
    return client.post(f"{PAGE}/codes", json.dumps(body), content_type="application/json", headers=headers)


def end(client: Client, code: dict[str, Any]) -> Any:
    url = f"{PAGE}/codes/{code['qr_code_id']}/expire"
    return client.post(url, "{}", content_type="application/json")


def state(client: Client, *codes: dict[str, Any], **headers: str) -> Any:
    query = {"code": [each["qr_code_id"] for each in codes]}
    answer = client.get(f"{PAGE}/state", query, headers={"Accept-Language": "th"} | headers)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("role", ShopRole)
def test_only_roles_that_sell_use_the_till(shop: Shop, role: ShopRole) -> None:
    person, expected = person_of(shop, role), 200 if role in ALLOWED else 403
    for path in READS:
        assert person.get(path).status_code == expected, path
    assert make(person).status_code == expected
    assert person.post(f"{PAGE}/slip").status_code == expected
    assert (PAGE in person.get("/shop/").content.decode()) is (role in ALLOWED)


def test_nobody_uses_the_till_without_logging_in(shop: Shop) -> None:
    for path in READS:
        assert Client().get(path).status_code == 302, path
    for path in WRITES:
        assert Client().post(path).status_code == 302, path
    assert not Payment.objects.exists()


def test_cashier_makes_a_code_as_the_api_does(shop: Shop, cashier: Client) -> None:
    made = make(cashier, reference="Table 4").json()
    assert shop.get(f"/v1/qr-codes/{made['qr_code_id']}").json() == made
    assert (made["amount"], made["metadata"]) == (10_025, {"till": "Counter 1"})
    assert Event.objects.get(subject_id=made["payment_id"]).actor == "person:cashier-somtam"


def test_repeat_with_the_same_key_makes_no_second_code(shop: Shop, cashier: Client) -> None:
    first, again = make(cashier), make(cashier)
    assert again.content == first.content
    assert again["Idempotent-Replayed"] == "true"
    assert Payment.objects.count() == 1
    assert make(cashier, amount=500).status_code == 409
    assert make(person_of(shop, ShopRole.OWNER), key="key-2").json() != first.json()


def test_till_of_another_shop_that_its_person_chose_meanwhile_makes_nothing(
    other_shop: Shop, cashier: Client
) -> None:
    headers = {"Till-Merchant": other_shop.merchant.pk}
    assert cashier.post(f"{PAGE}/codes", {}, headers=headers).status_code == 403
    assert cashier.get(f"{PAGE}/state", headers=headers).status_code == 403


def test_request_without_csrf_token_makes_no_code(cashier: Client) -> None:
    cashier.handler.enforce_csrf_checks = True
    assert make(cashier).status_code == 403
    assert not Payment.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"client_bank_account": "1234567890"},
        {"expiry_minutes": 1440},
        {"metadata": {}},
        {"metadata": None},
        {"metadata": {"till": 1}},
        {"metadata": {"till": ""}},
        {"metadata": {"till": "x" * 41}},
        {"metadata": {"till": "1", "order": "2"}},
        {"amount": 0},
        {"amount": "100"},
        {"reference": "x" * 36},
    ],
)
def test_till_sends_only_amount_reference_and_its_name(cashier: Client, fields: dict[str, Any]) -> None:
    answer = make(cashier, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert not Payment.objects.exists()


def test_codes_of_one_person_are_limited(cashier: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "RATE", RateLimit(per_second=0.01, burst=2))
    answers = [make(cashier, key=f"key-{number}") for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "Retry-After" in answers[2].headers


def test_paid_code_is_said_in_words_and_shows_as_money_of_its_till(
    cashier: Client, bank: SandboxBankClient
) -> None:
    code = make(cashier, reference="Table 4").json()
    (shown,) = state(cashier, code)["codes"]
    assert (shown["state"], shown["may_change"], "words" in shown) == ("pending", True, False)
    bank.notify(code)
    found = state(cashier, code)
    (shown,), (arrived,) = found["codes"], found["arrived"]
    assert (shown["state"], shown["may_change"]) == ("paid", False)
    assert shown["words"].endswith("หนึ่งร้อยบาทยี่สิบห้าสตางค์")
    assert (arrived["amount_display"], arrived["reference"], arrived["till"]) == (
        "100.25 บาท",
        "Table 4",
        "Counter 1",
    )


def test_money_that_does_not_match_is_no_payment(cashier: Client, bank: SandboxBankClient) -> None:
    code = make(cashier).json()
    bank.notify(code, satang=10_000)
    found = state(cashier, code)
    (shown,) = found["codes"]
    assert (shown["state"], shown["may_change"], found["arrived"]) == ("review", True, [])
    assert "words" not in shown


def test_till_of_a_suspended_shop_makes_no_code_and_says_so(shop: Shop, cashier: Client) -> None:
    code = make(cashier).json()
    Merchant.objects.filter(pk=shop.merchant.pk).update(suspended_at=clock.now())
    refused = make(cashier, key="key-2")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/json")
    assert refused.json()["error"]["code"] == "merchant_suspended"
    (shown,) = state(cashier, code)["codes"]
    assert (shown["state"], shown["may_change"]) == ("suspended", True)


def test_open_codes_of_all_tills_are_listed_until_they_end(shop: Shop, cashier: Client) -> None:
    owner = person_of(shop)
    first, second = make(cashier).json(), make(owner, key="key-2", metadata={"till": "Counter 2"}).json()
    shop.qr_code()
    tills = [each["till"] for each in state(cashier)["codes"]]
    assert tills == ["Counter 2", "Counter 1"]
    assert end(cashier, second).status_code == 200
    assert end(cashier, second).status_code == 400
    with time_machine.travel(clock.now() + timedelta(minutes=16)):
        assert state(person_of(shop, name="late"))["codes"] == []
        (shown,) = state(person_of(shop, name="later"), first)["codes"]
    assert (shown["state"], shown["may_change"]) == ("expired", True)


def test_money_of_yesterday_is_not_shown(shop: Shop, cashier: Client, bank: SandboxBankClient) -> None:
    with time_machine.travel(clock.now() - timedelta(days=1)):
        Seller(shop, bank).paid()
    assert state(cashier)["arrived"] == []


def test_state_that_is_shown_already_is_not_sent_again(cashier: Client, bank: SandboxBankClient) -> None:
    code = make(cashier).json()
    url = f"{PAGE}/state?code={code['qr_code_id']}"
    etag = cashier.get(url)["ETag"]
    assert cashier.get(url, headers={"If-None-Match": etag}).status_code == 304
    bank.notify(code)
    assert cashier.get(url, headers={"If-None-Match": etag}).status_code == 200


@pytest.fixture(params=["both fences", "the views of PostgreSQL alone"])
def fences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "both fences":
        monkeypatch.setattr(PaymentQuerySet, "of", lambda found, merchant: found)
        monkeypatch.setattr(Transaction.objects, "filter", _of_all_merchants)


def _of_all_merchants(**where: Any) -> QuerySet[Transaction]:
    return QuerySet(Transaction).filter(**{name: where[name] for name in where if name != "merchant"})


@pytest.mark.usefixtures("fences")
def test_till_shows_nothing_of_a_rival(
    shop: Shop, other_shop: Shop, cashier: Client, bank: SandboxBankClient
) -> None:
    rival = person_of(other_shop, ShopRole.CASHIER)
    unpaid, paid = make(rival).json(), make(rival, key="key-2").json()
    bank.notify(paid)
    assert state(cashier, unpaid, paid) == {"codes": [], "arrived": []}
    assert len(state(rival, unpaid, paid)["codes"]) == 2


def test_cashier_neither_reads_nor_ends_codes_of_others(
    shop: Shop, other_shop: Shop, cashier: Client
) -> None:
    foreign, of_api = make(person_of(other_shop)).json(), shop.qr_code()
    assert state(cashier, of_api)["codes"] == []
    for code in (foreign, of_api, {"qr_code_id": "qr_x"}):
        assert end(cashier, code).status_code == 404
    assert not Payment.objects.exclude(status="pending").exists()


def test_state_costs_the_same_for_any_number_of_codes(shop: Shop, cashier: Client) -> None:
    counts = []
    for number in range(2):
        for each in range(3):
            make(cashier, key=f"key-{number}-{each}")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            state(cashier)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_lists_of_the_state_are_read_in_the_order_of_an_index(cashier: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        state(cashier)
    newest = [
        each["sql"] for each in queries if "DESC LIMIT" in each["sql"] and "metadata" not in each["sql"]
    ]
    assert len(newest) == 2
    with connection.cursor() as cursor:
        for slow in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{slow} = off")
        for sql in newest:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Index" in plan, plan
            # Rows of one millisecond may be sorted.
            assert "Sort  (" not in plan.replace("Incremental Sort", "") or "Presorted Key" in plan, plan


def test_worker_has_the_scope_of_the_till_and_is_for_its_people_only(shop: Shop, cashier: Client) -> None:
    worker = cashier.get(f"{PAGE}/worker")
    assert (worker["Content-Type"], worker["Service-Worker-Allowed"]) == ("text/javascript", PAGE)
    assert worker["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert f'data-worker-url="{PAGE}/worker"' in cashier.get(PAGE).content.decode()
    assert person_of(shop, ShopRole.ACCOUNTANT).get(f"{PAGE}/worker").status_code == 403
    assert Client().get(f"{PAGE}/worker").status_code == 302


def test_manifest_and_policy_let_a_device_install_the_till(cashier: Client) -> None:
    manifest = cashier.get(f"{PAGE}/manifest").json()
    assert (manifest["start_url"], manifest["display"]) == (PAGE, "standalone")
    assert "Somtam House" in manifest["name"]
    policy = cashier.get(PAGE)["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert policy.endswith("manifest-src 'self'")
