"""The sandbox bank as an acquirer: its server, test cards and refunds."""

import socket
from functools import partial
from typing import Any

import pytest
import requests
from django.conf import settings as configured
from pytest_django import Settings

from banks import ChargeRequest, TransferOrder, TransferResult
from banks.sandbox_cards import SandboxAcquirer
from config.devstack import ports
from core import clock
from sandbox.acquirer_server import run_acquirer_server
from sandbox.models import SandboxCardRefund, SandboxCharge
from tests.concurrency import run_concurrently

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def order(amount: int, order_id: str = "ref_1", charge_id: str | None = None) -> TransferOrder:
    return TransferOrder(order_id, "refund", amount, "", "", "", charge_id or SandboxCharge.objects.get().id)


@pytest.mark.parametrize(("host", "name"), [("127.0.0.2", "127.0.0.2"), ("::1", "[::1]")])
def test_server_listens_where_web_listens(settings: Settings, host: str, name: str) -> None:
    settings.HOST, port = host, ports.pick()
    settings.SANDBOX_ACQUIRER_URL = f"http://{name}:{port}"
    with run_acquirer_server(), socket.create_connection((host, port), timeout=5):
        found = SandboxAcquirer(configured.SANDBOX_BANK_SECRET, settings.SANDBOX_ACQUIRER_URL)
        assert found.find("pay_1", charge_id="", starts_at=clock.now()).outcome == "missing"


def test_charge_is_idempotent_by_order_id(acquirer: SandboxAcquirer) -> None:
    first = acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", 150_000))
    assert acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", 150_000)) == first
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()) == first
    assert acquirer.find("pay_2", charge_id="", starts_at=clock.now()).outcome == "missing"
    assert SandboxCharge.objects.get().amount == 150_000


def test_concurrent_charges_of_one_order_are_charged_once(acquirer: SandboxAcquirer) -> None:
    pay = partial(acquirer.charge, ChargeRequest("pay_1", "tok_test_visa", 150_000))
    assert len({output.charge_id for output in run_concurrently(*[pay] * 10)}) == 1


def test_card_refund_is_idempotent_by_order_id(acquirer: SandboxAcquirer) -> None:
    acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", 150_000))
    assert acquirer.inquire(order(100_000)) == TransferResult("unknown")
    first = acquirer.send(order(100_000))
    assert first.status == "succeeded"
    assert acquirer.send(order(100_000)) == acquirer.inquire(order(100_000)) == first
    assert SandboxCardRefund.objects.get().amount == SandboxCharge.objects.get().refunded == 100_000


def test_card_refunds_do_not_exceed_the_charge(acquirer: SandboxAcquirer) -> None:
    acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", 150_000))
    orders = [order(100_000, f"ref_{number}") for number in range(10)]
    messages = run_concurrently(*[partial(acquirer.send, each) for each in orders])
    assert sorted(result.status for result in messages) == ["failed"] * 9 + ["succeeded"]
    assert SandboxCharge.objects.get().refunded == 100_000


@pytest.mark.parametrize("token", ["tok_test_declined", "tok_test_used"])
def test_failed_charge_cannot_be_refunded(acquirer: SandboxAcquirer, token: str) -> None:
    acquirer.charge(ChargeRequest("pay_1", token, 150_000))
    result = acquirer.send(order(100_000, charge_id="sbc_0"))
    assert result == TransferResult("failed", failure_code="rejected_by_acquirer")


def test_sandbox_acquirer_requires_secret(url: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        response = requests.post(f"{url}/charges", json={}, headers=headers, timeout=60)
        assert (response.status_code, response.json()) == (401, {"code": "unauthorized"})


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"order_id": "pay_1"}', b'{"amount": "x"}', b"\xff"])
def test_malformed_acquirer_request_is_400(url: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {configured.SANDBOX_BANK_SECRET}"}
    response = requests.post(f"{url}/charges", data=body, headers=headers, timeout=60)
    assert (response.status_code, response.json()) == (400, {"code": "invalid_request"})
    assert requests.get(f"{url}/charges", headers=headers, timeout=60).status_code == 400


def test_several_sandbox_banks_may_charge_at_one_address(url: str, acquirer: SandboxAcquirer) -> None:
    with run_acquirer_server():
        assert acquirer.charge(ChargeRequest("pay_1", "tok_test_visa", 150_000)).outcome == "succeeded"
    assert acquirer.find("pay_1", charge_id="", starts_at=clock.now()).outcome == "succeeded"
