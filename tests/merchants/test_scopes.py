"""Scopes and networks of API keys: what a key may do and from where, on every operation for merchants."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.urls import URLPattern, get_resolver
from pytest_django import Settings

from core import clock as our_clock, ids, request_context
from core.http.openapi import operation_of
from core.http.scopes import Scope
from merchants import secret_keys, services
from merchants.api import MerchantViewSet
from merchants.models import MAX_SEEN_NETWORKS, ApiKey
from tests.conftest import Shop
from tests.error_messages import check_error
from tests.security_lines import security_lines

PAYMENT_SCOPES = [Scope.PAYMENTS_WRITE, Scope.PAYMENTS_READ]
SAMPLES = {
    "payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "qr_code_id": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "refund_id": "ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    "webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "delivery_id": "dlv_0oDFPb5YgQm2vHc8KpXtR4sWnZe",
    "event_id": "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "withdrawal_id": "wd_0oDFPXrTS4spMBBZozkykNHKN2t",
    "date": "2026-11-21",
}


def routes() -> Iterator[tuple[str, str, Any]]:
    """Method, path and handler of every operation of the merchant API."""
    for pattern in get_resolver().url_patterns:
        viewset = getattr(getattr(pattern, "callback", None), "cls", None)
        if isinstance(pattern, URLPattern) and viewset and issubclass(viewset, MerchantViewSet):
            path = "/" + str(pattern.pattern)
            for name, value in SAMPLES.items():
                path = path.replace(f"<str:{name}>", value)
            actions: dict[str, str] = getattr(pattern.callback, "actions")  # noqa: B009
            for method, action in actions.items():
                if method != "head":
                    yield method, path, getattr(viewset, action)


ROUTES = list(routes())


def with_key(shop: Shop, scopes: Any = services.ALL_SCOPES, networks: Any = ()) -> Shop:
    """The shop with another key."""
    _, secret = services.issue_key(
        merchant=shop.merchant, now=our_clock.now(), scopes=scopes, networks=networks
    )
    return replace(shop, secret_key=secret)


def ask(shop: Shop, method: str, path: str) -> Any:
    call = getattr(shop, method)
    return call(path, {}) if method in ("post", "patch") else call(path)


def key_of(shop: Shop) -> ApiKey:
    return ApiKey.objects.get(public_id=secret_keys.public_id(shop.secret_key))


def scope_of(handler: Any) -> Scope:
    operation = operation_of(handler)
    assert operation is not None
    assert operation.scope is not None
    return operation.scope


def test_every_operation_of_the_merchant_api_declares_a_scope() -> None:
    for method, path, handler in ROUTES:
        assert scope_of(handler) in Scope
        # A check of a slip changes nothing.
        assert method == "get" or scope_of(handler) != Scope.PAYMENTS_READ or path.endswith("/slips")


def test_every_scope_has_a_route() -> None:
    assert len(ROUTES) > 60
    assert {scope_of(handler) for _, _, handler in ROUTES} == set(Scope)


@pytest.mark.slow
def test_operation_without_the_required_scope_is_refused(shop: Shop) -> None:
    for method, path, handler in ROUTES:
        scope = scope_of(handler)
        others = [each for each in Scope if each != scope]
        refused = ask(with_key(shop, others), method, path)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["type"]) == (
            403, "insufficient_scope", "permission_error",
        ), path  # fmt: skip
        check_error(refused.json(), "insufficient_scope", scope=scope.value)
        assert ask(with_key(shop, [scope]), method, path).status_code not in (401, 403, 500), path


def test_key_with_payment_scopes_cannot_withdraw_or_refund(shop: Shop) -> None:
    limited_shop, before = with_key(shop, PAYMENT_SCOPES), shop.get("/v1/balance").json()
    code = limited_shop.qr_code()
    assert limited_shop.payment(code["payment_id"])["status"] == "pending"
    order = {"amount": 100, "currency": "THB", "bank_code": "SCB", "bank_account": "4051234567",
             "account_name": "Somtam House"}  # fmt: skip
    for path, body in [("withdrawals", order), ("refunds", {"payment_id": code["payment_id"]})]:
        refused = limited_shop.post(f"/Thai/v1/{path}", body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
    assert shop.get("/v1/balance").json() == before
    assert shop.get("/v1/withdrawals").json()["total"] == 0


def test_read_key_does_not_see_webhook_secrets(shop: Shop) -> None:
    reader = with_key(shop, [Scope.PAYMENTS_READ])
    assert reader.get(f"/v1/webhooks/{SAMPLES['webhook_id']}/secret").status_code == 403


def test_stored_answer_is_not_replayed_to_a_key_without_the_scope(shop: Shop) -> None:
    body = {"amount": 100, "currency": "THB"}
    assert shop.post("/v1/qr-codes", body, key="order-1").status_code == 200
    assert with_key(shop, [Scope.PAYMENTS_READ]).post("/v1/qr-codes", body, key="order-1").status_code == 403


def test_unsupported_method_is_405_with_any_scope(shop: Shop) -> None:
    reader = with_key(shop, [Scope.REFUNDS_WRITE])
    assert reader.patch("/v1/balance", {}).status_code == 405
    assert reader.http.options("/v1/balance", headers=reader._headers({})).status_code == 405


@pytest.mark.parametrize(
    ("networks", "address", "status"),
    [
        (["203.0.113.0/24"], "203.0.113.7", 200),
        (["203.0.113.0/24"], "::ffff:203.0.113.7", 200),
        (["198.51.100.1", "2001:db8::/32"], "2001:db8::7", 200),
        (["203.0.113.0/24"], "198.51.100.1", 403),
        (["203.0.113.0/24"], "unix:", 403),
        ([], "unix:", 200),
    ],
)
def test_key_with_networks_is_refused_from_other_networks(
    shop: Shop, networks: list[str], address: str, status: int
) -> None:
    bound = with_key(shop, networks=networks)
    answer = bound.http.get("/v1/balance", headers=bound._headers({}), REMOTE_ADDR=address)
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["error"]["code"] == "insufficient_scope"
        assert key_of(bound).last_used_at is None


def test_key_from_a_forbidden_network_counts_as_refused(shop: Shop, settings: Settings) -> None:
    settings.REFUSED_KEYS_PER_MINUTE = 3
    key = with_key(shop, networks=["203.0.113.0/24"])
    answers = [key.get("/v1/balance").status_code for _ in range(5)]
    assert answers == [403, 403, 403, 429, 429]


def test_key_network_check_uses_the_address_behind_the_proxy(shop: Shop, settings: Settings) -> None:
    settings.PROXY_HOPS = 1
    bound = with_key(shop, networks=["203.0.113.0/24"])
    asked = {"X-Forwarded-For": "203.0.113.7, 198.51.100.1"}
    assert bound.get("/v1/balance", **asked).status_code == 403
    assert bound.get("/v1/balance", **{"X-Forwarded-For": "203.0.113.7"}).status_code == 200


def test_revoked_key_is_401_from_anywhere(shop: Shop) -> None:
    bound = with_key(shop, networks=["203.0.113.0/24"])
    services.revoke_key(key_id=key_of(bound).id, now=our_clock.now())
    assert bound.get("/v1/balance").status_code == 401


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scopes": ["payments:write", "everything"]}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"networks": ["203.0.113.300"]}, "networks"),
        ({"networks": ["203.0.113.7/24"]}, "networks"),
        ({"networks": ["shop.example"]}, "networks"),
        ({"networks": ["203.0.113.7"] * 21}, "networks"),
    ],
)
def test_invalid_scope_or_network_issues_no_key(shop: Shop, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        services.issue_key(merchant=shop.merchant, now=our_clock.now(), **changes)
    assert list(refused.value.message_dict) == [field]
    assert ApiKey.objects.count() == 1


# --- what PostgreSQL promises ---


@pytest.mark.parametrize("scopes", [["withdrawals:write", "root"], []])
def test_database_refuses_unknown_scopes(shop: Shop, scopes: list[str]) -> None:
    with pytest.raises(IntegrityError, match="api_key_scopes_known"), transaction.atomic():
        ApiKey.objects.create(
            id=ids.new("key_", our_clock.now()),
            merchant=shop.merchant,
            public_id="abcd1234",
            digest=b"x",
            created_at=our_clock.now(),
            scopes=scopes,
        )


@pytest.mark.parametrize(
    "change",
    [
        "scopes = '{payments:read}'",
        "networks = '{203.0.113.0/24}'",
        "merchant_id = 'mch_other'",
        "digest = 'x'",
        "issued_by = 'staff:nobody'",
        "created_at = now()",
        "expires_at = now() + interval '2 hours'",
        "expires_at = NULL",
    ],
)
def test_database_refuses_changes_of_an_issued_key(shop: Shop, change: str) -> None:
    services.issue_key(
        merchant=shop.merchant, now=our_clock.now(), expires_at=our_clock.now() + timedelta(hours=1)
    )
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE merchants_apikey SET {change} WHERE expires_at IS NOT NULL")


def test_revoked_key_stays_revoked_and_no_key_is_deleted(shop: Shop) -> None:
    services.revoke_key(key_id=key_of(shop).id, now=our_clock.now())
    for sql in (
        "UPDATE merchants_apikey SET revoked_at = NULL, revoked_by = ''",
        "UPDATE merchants_apikey SET revoked_by = 'staff:nobody'",
        "DELETE FROM merchants_apikey",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)


# --- commands and console ---


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    printed: dict[str, Any] = json.loads(out.getvalue())
    return printed


@pytest.mark.parametrize("scopes", [["payments:write", "payments:read"], ["payments:read,payments:write"]])
def test_command_issues_a_key_with_scopes_and_networks(shop: Shop, scopes: list[str]) -> None:
    printed = run("issue_key", shop.merchant.id, "--scopes", *scopes, "--networks", "203.0.113.0/24")
    assert printed["scopes"] == ["payments:read", "payments:write"]
    assert printed["networks"] == ["203.0.113.0/24"]
    key = ApiKey.objects.get(pk=printed["key_id"])
    assert (key.scopes, key.networks) == (printed["scopes"], printed["networks"])


def test_new_key_has_all_scopes_by_default(shop: Shop) -> None:
    assert run("issue_key", shop.merchant.id)["scopes"] == Scope.values
    assert key_of(shop).scopes == Scope.values


def test_create_merchant_with_scopes_limits_the_first_key(db: None) -> None:
    printed = run("create_merchant", "--name", "Khao Soi", "--mode", "test", "--scopes", *PAYMENT_SCOPES)
    assert printed["scopes"] == ["payments:read", "payments:write"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scopes", "everything"], "--scopes: everything is not a scope"),
        (["--networks", "anywhere"], "--networks: anywhere is not a network"),
        (["--networks", ""], "give at least one"),
    ],
)
def test_issue_key_command_names_the_invalid_option(shop: Shop, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("issue_key", shop.merchant.id, *arguments)
    assert ApiKey.objects.count() == 1


def test_rolled_key_keeps_scopes_and_networks(shop: Shop) -> None:
    limited_shop = with_key(shop, PAYMENT_SCOPES, ["127.0.0.0/8"])
    rolled = run("roll_key", key_of(limited_shop).public_id)
    assert rolled["scopes"] == ["payments:read", "payments:write"]
    assert rolled["networks"] == ["127.0.0.0/8"]


def test_api_key_stores_issued_by_and_revoked_by(shop: Shop) -> None:
    request_context.begin(actor="command:issue_key")
    printed = run("issue_key", shop.merchant.id)
    request_context.begin(actor="staff:somsri")
    run("revoke_key", printed["key_id"])
    run("revoke_key", printed["key_id"])
    key = ApiKey.objects.get(pk=printed["key_id"])
    assert (key.issued_by, key.revoked_by) == ("command:issue_key", "staff:somsri")


# --- new networks ---


def test_new_network_of_a_key_is_recorded_once(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    for address in ["203.0.113.7", "203.0.113.8", "198.51.100.1", "203.0.113.9", "2001:db8:1:2::3", "unix:"]:
        shop.http.get("/v1/balance", headers=shop._headers({}), REMOTE_ADDR=address)
    lines = security_lines(caplog, "key_used_from_new_network")
    assert [line["network"] for line in lines] == ["203.0.113.0/24", "198.51.100.0/24", "2001:db8:1::/48"]
    key = key_of(shop)
    assert key.seen_networks == [line["network"] for line in lines]
    assert {line["subject"] for line in lines} == {f"key:{key.public_id}"}


@pytest.mark.slow
def test_key_remembers_a_limited_number_of_networks_without_the_oldest(shop: Shop) -> None:
    for number in range(MAX_SEEN_NETWORKS + 5):
        shop.http.get("/v1/balance", headers=shop._headers({}), REMOTE_ADDR=f"10.0.{number}.1")
    seen = key_of(shop).seen_networks
    assert len(seen) == MAX_SEEN_NETWORKS
    assert (seen[0], seen[-1]) == ("10.0.5.0/24", f"10.0.{MAX_SEEN_NETWORKS + 4}.0/24")


def test_request_from_a_new_network_updates_last_used_at(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        shop.get("/v1/balance")
    assert key_of(shop).last_used_at == noon
    assert key_of(shop).seen_networks == ["127.0.0.0/24"]
