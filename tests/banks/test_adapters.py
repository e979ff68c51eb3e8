"""The registry of adapters, and what all adapters have in common."""

import json
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given, strategies as st

import banks
from banks import AdapterConfig, Bank, InvalidSignature, ReportedTransaction, UnreadableMessage
from banks.bbl import Bbl
from banks.omise import Omise
from banks.sandbox import SandboxBank
from banks.sandbox_cards import SandboxAcquirer
from banks.scb import Scb
from core import clock
from tests.banks import fake_bbl, fake_scb
from tests.banks.test_sandbox import NOTIFICATION

BBL_CONFIG = AdapterConfig("bbl", fake_bbl.BILLER, fake_bbl.credentials())
ADAPTERS: dict[str, tuple[Bank, dict[str, Any]]] = {
    "sandbox": (SandboxBank("the-secret"), NOTIFICATION),
    "scb": (Scb(fake_scb.CONFIG), fake_scb.CONFIRMATION),
    "bbl": (Bbl(BBL_CONFIG), fake_bbl.PUSH),
}
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@pytest.mark.parametrize("name", ADAPTERS)
@given(st.binary())
def test_arbitrary_bytes_raise_only_unreadable_message(name: str, sent: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        ADAPTERS[name][0].parse_notification(sent)


@pytest.mark.parametrize("name", ADAPTERS)
@given(st.data())
def test_arbitrary_values_are_parsed_or_unreadable(name: str, data: st.DataObject) -> None:
    adapter, notification = ADAPTERS[name]
    changes = data.draw(st.dictionaries(st.sampled_from(list(notification)), VALUES))
    try:
        transaction = adapter.parse_notification(json.dumps(notification | changes).encode())
    except UnreadableMessage:
        return
    assert isinstance(transaction, ReportedTransaction)
    assert transaction.amount > 0
    assert transaction.paid_at.tzinfo is UTC
    assert name == "sandbox" or transaction.biller_id in (fake_scb.BILLER, fake_bbl.BILLER)


@pytest.mark.parametrize(
    ("name", "header"),
    [("sandbox", "Sandbox-Bank-Signature"), ("bbl", "Signature"), ("bbl", "Authorization")],
)
@given(st.text(), st.binary())
def test_arbitrary_signature_header_raises_only_invalid_signature(
    name: str, header: str, value: str, sent: bytes
) -> None:
    with pytest.raises(InvalidSignature):
        ADAPTERS[name][0].verify(headers={header: value}, body=sent, now=clock.now())


def test_sandbox_bank_is_found_by_name() -> None:
    assert banks.get("sandbox").acknowledge(None) == {"status": "held"}


@pytest.mark.parametrize("name", ["", "Sandbox", "scb", "kbank"])
def test_bank_without_adapter_raises_unknown_bank(name: str) -> None:
    with pytest.raises(banks.UnknownBank):
        banks.get(name)


def test_live_bank_needs_connection_of_the_merchant() -> None:
    for config in (fake_scb.CONFIG, BBL_CONFIG):
        assert isinstance(banks.get(config.bank, config), banks.LIVE_BANKS[config.bank])
    for name, config in (("scb", BBL_CONFIG), ("bbl", fake_scb.CONFIG), ("kbank", fake_scb.CONFIG)):
        with pytest.raises(banks.UnknownBank):
            banks.get(name, config)


@pytest.mark.parametrize("name", list(banks.LIVE_BANKS))
def test_live_bank_declares_credential_fields_and_authentication(name: str) -> None:
    bank = banks.LIVE_BANKS[name]
    assert bank.title and bank.authentication_note and all(field.help for field in bank.credential_fields)
    with pytest.raises(banks.InvalidCredential, match="is missing"):
        banks.validate_credentials(bank.credential_fields, {})


@pytest.mark.parametrize(
    ("name", "is_supported"), [("scb", True), ("sandbox", True), ("bbl", False), ("", False)]
)
def test_supports_slip_lookup_is_declared_per_bank(name: str, is_supported: bool) -> None:
    assert banks.supports_slip_lookup(name) == is_supported


def test_acquirers_can_charge_and_refund(settings: Any) -> None:
    settings.SANDBOX_ACQUIRER_URL, settings.OMISE_SECRET_KEY = "http://127.0.0.1:8100", "skey_test_1"
    for name, adapter in (("sandbox", SandboxAcquirer), ("omise", Omise)):
        assert isinstance(banks.acquirer(name), adapter)
        assert isinstance(banks.sender(f"acquirer:{name}"), adapter)


@pytest.mark.parametrize("name", ["", "sandbox", "omise", "bank"])
def test_acquirer_that_is_not_configured_raises_unknown_bank(settings: Any, name: str) -> None:
    settings.SANDBOX_ACQUIRER_URL = settings.OMISE_SECRET_KEY = ""
    with pytest.raises(banks.UnknownBank):
        banks.acquirer(name)
    with pytest.raises(banks.UnknownBank):
        banks.sender(f"acquirer:{name}")


@pytest.mark.parametrize("route", ["", "sandbox", "bank:nobody", "bank:"])
def test_unknown_route_raises_unknown_bank(route: str) -> None:
    with pytest.raises(banks.UnknownBank):
        banks.sender(route)


def test_deployment_without_the_sandbox_secret_has_no_sandbox_bank(settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(banks.UnknownBank):
        banks.get("sandbox")
    with pytest.raises(banks.UnknownBank):
        banks.sender("bank:sandbox")


def test_bank_without_signatures_supports_inquiry() -> None:
    """A bank without signatures needs inquiries to confirm its payments."""
    known: dict[str, type[Bank]] = {**banks.LIVE_BANKS, **banks.configured_banks()}
    unsigned = {name for name, bank in known.items() if not bank.signs_callbacks}
    assert unsigned == {"scb"}
    assert all(bank.calls_per_second > 0 for bank in known.values())
