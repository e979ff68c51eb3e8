"""The sandbox bank as an acquirer: its door, its test cards, its refunds."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import requests
from django.conf import settings as configured
from pytest_django import Settings

from banks import Charge, Order, Word
from banks.sandbox_cards import SandboxAcquirer
from config.devstack import ports
from core import clock
from sandbox.counter import open_counter
from sandbox.models import SandboxCardRefund, SandboxCharge
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    settings.SANDBOX_ACQUIRER_URL = f"http://127.0.0.1:{ports.pick()}"
    with open_counter():
        yield settings.SANDBOX_ACQUIRER_URL


@pytest.fixture
def acquirer(url: str) -> SandboxAcquirer:
    return SandboxAcquirer(configured.SANDBOX_BANK_SECRET, url)


def order(amount: int, order_id: str = "ref_1", charge_id: str | None = None) -> Order:
    return Order(order_id, "refund", amount, "", "", "", charge_id or SandboxCharge.objects.get().id)


def test_a_charge_is_made_once_for_an_order_and_found_by_it(acquirer: SandboxAcquirer) -> None:
    first = acquirer.charge(Charge("pay_1", "tok_test_visa", 150_000))
    assert acquirer.charge(Charge("pay_1", "tok_test_visa", 150_000)) == first
    assert acquirer.find("pay_1", charge_id="", since=clock.now()) == first
    assert acquirer.find("pay_2", charge_id="", since=clock.now()).outcome == "missing"
    assert SandboxCharge.objects.get().amount == 150_000


def test_the_same_order_by_many_at_once_is_one_charge(acquirer: SandboxAcquirer) -> None:
    pay = partial(acquirer.charge, Charge("pay_1", "tok_test_visa", 150_000))
    assert len({said.charge_id for said in at_once(*[pay] * 10)}) == 1


def test_a_refund_is_made_once_for_an_order_and_found_by_it(acquirer: SandboxAcquirer) -> None:
    acquirer.charge(Charge("pay_1", "tok_test_visa", 150_000))
    assert acquirer.inquire(order(100_000)) == Word("unknown")
    first = acquirer.send(order(100_000))
    assert first.fate == "succeeded"
    assert acquirer.send(order(100_000)) == acquirer.inquire(order(100_000)) == first
    assert SandboxCardRefund.objects.get().amount == SandboxCharge.objects.get().refunded == 100_000


def test_no_more_goes_back_than_was_charged(acquirer: SandboxAcquirer) -> None:
    acquirer.charge(Charge("pay_1", "tok_test_visa", 150_000))
    orders = [order(100_000, f"ref_{number}") for number in range(10)]
    words = at_once(*[partial(acquirer.send, each) for each in orders])
    assert sorted(word.fate for word in words) == ["failed"] * 9 + ["succeeded"]
    assert SandboxCharge.objects.get().refunded == 100_000


@pytest.mark.parametrize("token", ["tok_test_declined", "tok_test_used"])
def test_what_was_not_charged_cannot_go_back(acquirer: SandboxAcquirer, token: str) -> None:
    acquirer.charge(Charge("pay_1", token, 150_000))
    word = acquirer.send(order(100_000, charge_id="sbc_0"))
    assert word == Word("failed", failure_code="rejected_by_acquirer")


def test_only_the_service_may_ask(url: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = requests.post(f"{url}/charges", json={}, headers=headers, timeout=60)
        assert (answer.status_code, answer.json()) == (401, {"code": "unauthorized"})


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"order_id": "pay_1"}', b'{"amount": "x"}', b"\xff"])
def test_what_cannot_be_read_is_refused(url: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {configured.SANDBOX_BANK_SECRET}"}
    answer = requests.post(f"{url}/charges", data=body, headers=headers, timeout=60)
    assert (answer.status_code, answer.json()) == (400, {"code": "invalid_request"})
    assert requests.get(f"{url}/charges", headers=headers, timeout=60).status_code == 400


def test_several_sandbox_banks_may_charge_at_one_address(url: str, acquirer: SandboxAcquirer) -> None:
    with open_counter():
        assert acquirer.charge(Charge("pay_1", "tok_test_visa", 150_000)).outcome == "succeeded"
    assert acquirer.find("pay_1", charge_id="", since=clock.now()).outcome == "succeeded"
