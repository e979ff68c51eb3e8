"""On every route, an object of another merchant is answered like an unknown one.

The routes come from the URL table, so new routes are tested too. A new path parameter needs a builder in
`OWNED`; a route that validates a body before the look-up needs one in `BODIES`.

The pages at /shop/ come from their URL table too, and are tried as each role.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import URLResolver, get_resolver
from pytest_django import Settings

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from config.urls import API_ROUTES, PLAIN_PREFIX, THAI_PREFIX
from console.people.roles import ShopRole
from core import clock, ids
from merchants import secret_keys, services
from merchants.models import HoldsPayers
from operations.data_protection import shop_fence
from request_log.models import RequestRecord
from shop.site import site as shop_site
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.refunds.builders import NOBODY, PAYEE, RefundShop
from tests.request_log.builders import make_records
from tests.settlements.conftest import a_settlement, acquirer
from tests.shop.people import FullShop, join
from tests.staff_acts import act_form
from tests.webhooks.messages.destinations import TO_LINE
from tests.withdrawals.builders import fund, withdrawn

__all__ = ["acquirer"]  # a fixture
pytestmark = pytest.mark.usefixtures("acquirer")
ID = re.compile(rb"[0-9A-Za-z]{27}")

REFUSED = (
    b'{"error":{"code":"authentication_failed","message":"The secret key is missing or not valid.",'
    b'"type":"authentication_error"}}'
)


@dataclass(frozen=True)
class Route:
    """An API operation: a method and a path."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"<str:(\w+)>", self.path)

    def at(self, found: dict[str, str]) -> str:
        return "/" + re.sub(r"<str:(\w+)>", lambda match: found[match[1]], self.path)


ROUTES = [
    Route(method.upper(), prefix + tail)
    for prefix in (THAI_PREFIX, PLAIN_PREFIX)
    for tail, _, actions in API_ROUTES
    for method in actions
] + [Route("POST", "Thai/qr-codes")]
OF_ONE = [route for route in ROUTES if route.parameters]
# The banks of the country are the same for all merchants.
NO_LISTS_OF_A_MERCHANT = ("balance", "/banks", "/requests")
LISTS = [
    route
    for route in ROUTES
    if route.method == "GET" and not route.parameters and not route.path.endswith(NO_LISTS_OF_A_MERCHANT)
]
# Bodies that pass validation, by the end of the path.
BODIES: dict[str, dict[str, Any]] = {"/replay": {"since": "2026-11-21"}, "/destination": PAYEE}


def a_webhook(shop: Shop) -> str:
    request_body = {"url": "https://shop.example/hook", "events": ["payment.succeeded"]}
    return str(shop.post("/Thai/v1/webhooks", request_body).json()["webhook_id"])


def a_destination(shop: Shop) -> str:
    return str(shop.post("/v1/destinations", TO_LINE).json()["destination_id"])


def a_delivery(shop: Shop) -> str:
    """A delivery of the only webhook of the shop."""
    (webhook,) = shop.get("/v1/webhooks").json()["webhooks"]
    return str(shop.post(f"/v1/webhooks/{webhook['webhook_id']}/test").json()["delivery_id"])


def an_event(shop: Shop) -> str:
    shop.qr_code()
    return str(shop.get("/v1/events").json()["events"][0]["event_id"])


def a_refund(shop: Shop) -> str:
    """A refund that waits for its destination and can be canceled."""
    refund_shop = RefundShop(shop, SandboxBankClient(shop.http))
    refund_id = str(refund_shop.refund(refund_shop.paid(payer=NOBODY))["refund_id"])
    shop.post(f"/v1/refunds/{refund_id}/claim-link", {})
    return refund_id


def a_withdrawal(shop: Shop) -> str:
    fund(shop, SandboxBankClient(new_client()))
    return str(withdrawn(shop)["withdrawal_id"])


def a_transaction(shop: Shop) -> str:
    SandboxBankClient(new_client()).notify(shop.qr_code())
    return str(shop.get("/v1/transactions").json()["transactions"][0]["transaction_id"])


def an_exception(shop: Shop) -> str:
    """Too little money for the newest payment of the shop."""
    (payment,) = shop.get("/v1/payments?limit=1").json()["payments"]
    code = shop.get(f"/v1/qr-codes/{payment['qr_code_id']}").json()
    SandboxBankClient(new_client()).notify(code, satang=1)
    (found,) = shop.get(f"/v1/payments/{payment['payment_id']}/exceptions").json()["exceptions"]
    return str(found["exception_id"])


def a_held_payment(shop: Shop) -> str:
    services.set_policy(shop.merchant.pk, holds_payers=HoldsPayers.NO)
    code = shop.qr_code(client_name="Somying Jaidee")
    SandboxBankClient(new_client()).notify(code)
    return str(code["payment_id"])


def a_request(shop: Shop) -> str:
    return RequestRecord.objects.get(pk=make_records(shop, 1)[0]).request_id


def a_link(shop: Shop) -> str:
    return str(shop.post("/v1/payment-links", {"amount": 100}).json()["payment_link_id"])


# Builders of the objects that path parameters name. A delivery needs the webhook before it, an
# exception the payment.
OWNED: dict[str, Callable[[Shop], str]] = {
    "qr_code_id": lambda shop: str(shop.qr_code()["qr_code_id"]),
    "payment_id": lambda shop: str(shop.qr_code()["payment_id"]),
    "exception_id": an_exception,
    "refund_id": a_refund,
    "webhook_id": a_webhook,
    "destination_id": a_destination,
    "delivery_id": a_delivery,
    "event_id": an_event,
    "withdrawal_id": a_withdrawal,
    "transaction_id": a_transaction,
    "request_id": a_request,
    "settlement_id": a_settlement,
    "payment_link_id": a_link,
}


@pytest.fixture(autouse=True)
def no_probe(settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"


def ask(http: Client, route: Route, path: str, authorization: str | None) -> Any:
    body = next((body for tail, body in BODIES.items() if route.path.endswith(tail)), {})
    headers = {} if authorization is None else {"Authorization": authorization}
    sends = route.method in {"POST", "PATCH", "PUT"}
    return http.generic(
        route.method,
        path,
        json.dumps(body) if sends else "",
        content_type="application/json",
        headers=headers,
    )


def bearer(shop: Shop) -> str:
    return f"Bearer {shop.secret_key}"


def test_tenant_test_covers_every_path_parameter() -> None:
    assert {name for route in ROUTES for name in route.parameters} <= OWNED.keys()


@pytest.mark.parametrize("route", OF_ONE, ids=str)
@pytest.mark.slow
def test_object_of_another_merchant_is_404_like_an_unknown_object(
    route: Route, shop: Shop, other_shop: Shop
) -> None:
    builders = OWNED | ({"payment_id": a_held_payment} if route.path.endswith("/lift-hold") else {})
    owned = {name: builders[name](shop) for name in route.parameters}
    unknown = {name: ids.new(f"{found.partition('_')[0]}_", clock.now()) for name, found in owned.items()}
    other = ask(other_shop.http, route, route.at(owned), bearer(other_shop))
    nobodys = ask(other_shop.http, route, route.at(unknown), bearer(other_shop))
    assert other.status_code == nobodys.status_code == 404
    assert ID.sub(b"", other.content) == ID.sub(b"", nobodys.content)
    assert _names(other) == _names(nobodys)
    own = ask(shop.http, route, route.at(owned), bearer(shop))
    assert own.status_code in {200, 204} or b'"evidence_not_ready"' in own.content


def _names(response: Any) -> set[str]:
    return set(response.headers)


@pytest.mark.slow
def test_lists_and_totals_exclude_other_merchants(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, subtests: pytest.Subtests
) -> None:
    bank.notify(shop.qr_code())
    a_refund(shop)
    a_webhook(shop)
    a_destination(shop)
    withdrawn(shop)
    a_settlement(shop)
    a_link(shop)
    for route in LISTS:
        with subtests.test(str(route)):
            mine, other = (
                ask(each.http, route, route.at({}), bearer(each)).json() for each in (shop, other_shop)
            )
            (plural,) = mine.keys() - {"total", "limit", "offset"}
            assert mine["total"] == len(mine[plural]) > 0
            assert other == {plural: [], "total": 0, "limit": 20, "offset": 0}


@pytest.mark.parametrize("name", ["reference", "qr_code_id"])
def test_filters_do_not_reach_other_merchants(name: str, shop: Shop, other_shop: Shop) -> None:
    code = shop.qr_code(reference="order 17")
    path = f"/v1/payments?{name}={code[name].replace(' ', '%20')}"
    assert (shop.get(path).json()["total"], other_shop.get(path).json()["total"]) == (1, 0)


def test_idempotency_key_of_another_merchant_is_not_replayed(shop: Shop, other_shop: Shop) -> None:
    request_body = {"amount": 150_000, "currency": "THB"}
    mine, other = (each.post("/v1/qr-codes", request_body, key="order-1") for each in (shop, other_shop))
    assert (mine.status_code, other.status_code) == (200, 200)
    assert mine.json()["qr_code_id"] != other.json()["qr_code_id"]
    assert "Idempotent-Replayed" not in other.headers


def bad_keys(shop: Shop) -> dict[str, str | None]:
    """Every kind of wrong `Authorization` header."""
    now = clock.now()
    revoked, revoked_secret = services.issue_key(merchant=shop.merchant, now=now)
    services.revoke_key(key_id=revoked.id, now=now)
    _, expired_secret = services.issue_key(merchant=shop.merchant, now=now, expires_at=now)
    other_end = "a" if shop.secret_key[-1] != "a" else "b"
    return {
        "missing": None,
        "empty": "",
        "malformed": "Bearer sesame",
        "unknown": f"Bearer {secret_keys.generate('test')}",
        "of live mode": f"Bearer {secret_keys.generate('live')}",
        "wrong checksum": f"Bearer {shop.secret_key[:-1]}{other_end}",
        "twice": f"Bearer {shop.secret_key} {shop.secret_key}",
        "revoked": f"Bearer {revoked_secret}",
        "expired": f"Bearer {expired_secret}",
    }


def test_authorization_without_bearer_gets_a_hint_that_tells_nothing_about_the_key(shop: Shop) -> None:
    hint = "Authorization must be the word Bearer, a space and the secret key"
    for secret in (shop.secret_key, secret_keys.generate("test"), "sesame"):
        for header in (secret, f"Basic {secret}", f"Token {secret}", f"Bearer:{secret}"):
            answer = shop.http.get("/v1/payments", headers={"Authorization": header})
            assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
            assert answer.json()["error"].pop("detail") == hint
            assert secret not in answer.content.decode()
        for headers in (
            {"Authorization": f'Bearer "{secret}"'},
            {"Authorization": f"Bearer Bearer {secret}"},
            {"X-Api-Key": secret},
        ):
            answer = shop.http.get("/v1/payments", headers=headers)
            assert (answer.status_code, answer.json()["error"].pop("detail")) == (401, hint)
    for header in ("", "Bearer", "bearer ", f"Bearer {secret_keys.generate('test')}"):
        answer = shop.http.get("/v1/payments", headers={"Authorization": header})
        assert answer.content == REFUSED


@pytest.mark.slow
def test_invalid_revoked_and_expired_keys_get_the_same_401(
    shop: Shop, settings: Settings, subtests: pytest.Subtests
) -> None:
    settings.REFUSED_KEYS_PER_MINUTE = 0
    owned, keys = {name: make(shop) for name, make in OWNED.items()}, bad_keys(shop)
    for route in ROUTES:
        with subtests.test(str(route)):
            responses = {why: ask(shop.http, route, route.at(owned), key) for why, key in keys.items()}
            statuses = {why: response.status_code for why, response in responses.items()}
            assert statuses == dict.fromkeys(responses, 401)
            assert {response.content for response in responses.values()} == {REFUSED}
            assert {response["WWW-Authenticate"] for response in responses.values()} == {"Bearer"}
            assert len({frozenset(_names(response)) for response in responses.values()}) == 1


# Below /shop/: each page with the ids of the own shop and of a rival, for each role.
OUTSIDERS = ("nobody", "ended", "staff", "staff who look")
PEOPLE_OF_SHOPS = (*map(str, ShopRole), *OUTSIDERS)
# Who sees all lists. What narrows a list to the shop does not know the role.
WIDEST = (ShopRole.OWNER, "staff who look")
# What ends the session or the look of staff, or begins another look.
ENDS = ("/shop/logout/", "/shop/account/end-sessions/", "/shop/switch/", "/shop/look/")
QUERIES = ("q={id}", "merchant={merchant}", "o=-1.2", "all=", "_popup=1", "_to_field=merchant", "e=1", "p=9")


def shop_pages(full: FullShop) -> Iterator[str]:
    """Each address below /shop/, with the ids of this shop. A new parameter needs a value here."""
    values = {
        "merchant_id": full.shop.merchant.pk,
        "name": "form-that-waits",
        "pk": "1",
        "format": "json",
        "qr_code_id": full.rows["payments.payment"].qr_code_id,
    }
    shown: dict[str, Any] = {model._meta.label_lower: page for model, page in shop_site._registry.items()}
    for route in _routes(get_resolver("shop.urls").url_patterns):
        label = ".".join(route.split("/")[1:3])
        acts: Any = ()
        if "slug" in route:
            acts = shown[label].object_acts if "object_id" in route else shown[label].list_acts
        key = str(full.rows[label].pk).replace("_", "_5F") if label in full.rows else ""
        for slug in [act.slug for act in acts] or ["x"]:
            found = values | {"object_id": key, "slug": slug}
            yield "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: found[match[1]], route)  # noqa: B023


def _routes(patterns: list[Any], before: str = "") -> Iterator[str]:
    for each in patterns:
        route = before + re.sub(r"\^|\$|\(\?P<\w+>(\w+)\)", r"\1", str(each.pattern))
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, route)
        else:
            yield route


def a_person(who: str, own: Shop) -> User:
    """Somebody of the shop, or an outsider."""
    is_staff = who.startswith("staff")
    user = User.objects.create_user(who, is_staff=is_staff)
    if is_staff:
        user.user_permissions.add(*Permission.objects.filter(codename="look_at_shop"))
    elif who != "nobody":
        membership = join(user, own, ShopRole.OWNER if who == "ended" else ShopRole(who))
        if who == "ended":
            membership.ended_at = clock.now()
            membership.save()
    return user


def stored(full: FullShop) -> dict[str, list[Any]]:
    """All that the pages of this shop could show, as it is stored."""
    return {
        label: list(shop_fence.narrowed(model._base_manager.order_by("pk"), full.shop.merchant.pk).values())
        for label, model in ((label, apps.get_model(label)) for label in shop_fence.PATHS)
    }


@pytest.mark.slow
@pytest.mark.parametrize("who", PEOPLE_OF_SHOPS)
def test_pages_of_shops_show_and_change_nothing_of_another_merchant(
    who: str, shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    own, rival = FullShop(shop, bank), FullShop(other_shop, bank)
    user, theirs = a_person(who, shop), {row.pk for row in rival.rows.values()}
    before, own_before = stored(rival), stored(own)
    records = list(AuditRecord.objects.values_list("pk", flat=True))

    def browser() -> Client:
        client = Client()
        client.force_login(user)
        if who == "staff who look":
            client.post(f"/shop/look/{shop.merchant.pk}/", act_form())
        return client

    def check(answer: Any, page: str) -> None:
        shown = answer.content.decode(errors="replace")
        assert answer.status_code < 500, page
        assert other_shop.merchant.name not in shown or page.startswith("/shop/look/"), page
        context = answer.context or {}
        if "cl" in context:
            assert not theirs & {row.pk for row in context["cl"].result_list}, page
        if who in OUTSIDERS[:3] and "/payments/" in page:
            assert answer.status_code in (302, 403), page

    client, mine = browser(), list(shop_pages(own))
    others = [each for each in shop_pages(rival) if each not in mine]
    assert len(others) > len(rival.rows)
    for page in mine:
        check(client.get(page), page)
        for query in QUERIES if who in WIDEST and re.fullmatch(r"/shop/\w+/\w+/", page) else ():
            text = query.format(id=rival.rows["payments.payment"].pk, merchant=other_shop.merchant.pk)
            check(client.get(f"{page}?{text}"), f"{page}?{text}")
        client = browser() if page.startswith(ENDS) else client
    for page in others:
        read = client.get(page)
        check(read, page)
        assert read.status_code != 200 or page.startswith("/shop/look/"), page
    sent = {"amount": "1", "kind": "other", "merchant": other_shop.merchant.pk, "scopes": "payments:read"}
    for page in [*others, *mine]:
        check(client.post(page, act_form(**sent)), page)
        client = browser() if page.startswith(ENDS) else client
    assert stored(rival) == before
    assert who not in OUTSIDERS or stored(own) == own_before
    new = AuditRecord.objects.filter(merchant_id=other_shop.merchant.pk).exclude(pk__in=records)
    assert {each.act for each in new} <= ({Act.SHOP_VIEWED} if user.is_staff else set())
