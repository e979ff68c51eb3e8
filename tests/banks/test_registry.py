from typing import Any

import pytest

import banks
from banks import AdapterConfig
from banks.omise import Omise
from banks.sandbox_cards import SandboxAcquirer
from tests.banks import fake_bbl, fake_scb


def test_the_sandbox_bank_is_found_by_its_name() -> None:
    assert banks.get("sandbox").acknowledge(None) == {"status": "parked"}


@pytest.mark.parametrize("name", ["", "Sandbox", "scb", "kbank"])
def test_bank_without_adapter_raises_unknown_bank(name: str) -> None:
    with pytest.raises(banks.UnknownBank):
        banks.get(name)


def test_live_bank_needs_connection_of_the_merchant() -> None:
    links = [fake_scb.LINK, AdapterConfig("bbl", fake_bbl.BILLER, fake_bbl.credentials())]
    for link in links:
        assert isinstance(banks.get(link.bank, link), banks.LIVE_BANKS[link.bank])
    for name, link in (("scb", links[1]), ("bbl", links[0]), ("kbank", links[0])):
        with pytest.raises(banks.UnknownBank):
            banks.get(name, link)


@pytest.mark.parametrize("name", list(banks.LIVE_BANKS))
def test_live_bank_declares_credential_fields_and_authentication(name: str) -> None:
    bank = banks.LIVE_BANKS[name]
    assert bank.title and bank.authentication_note and all(need.help for need in bank.credential_fields)
    with pytest.raises(banks.InvalidCredential, match="is missing"):
        banks.validate_credentials(bank.credential_fields, {})


@pytest.mark.parametrize(("name", "knows"), [("scb", True), ("sandbox", True), ("bbl", False), ("", False)])
def test_slip_lookup_is_supported_by_some_banks(name: str, knows: bool) -> None:
    assert banks.supports_slip_lookup(name) == knows


def test_acquirers_can_charge_and_refund(settings: Any) -> None:
    settings.SANDBOX_ACQUIRER_URL, settings.OMISE_SECRET_KEY = "http://127.0.0.1:8100", "skey_test_1"
    assert isinstance(banks.acquirer("sandbox"), SandboxAcquirer)
    assert isinstance(banks.acquirer("omise"), Omise)
    assert isinstance(banks.sender("acquirer:sandbox"), SandboxAcquirer)
    assert isinstance(banks.sender("acquirer:omise"), Omise)


@pytest.mark.parametrize("name", ["", "sandbox", "omise", "bank"])
def test_an_acquirer_that_is_not_configured_is_unknown(settings: Any, name: str) -> None:
    settings.SANDBOX_ACQUIRER_URL = settings.OMISE_SECRET_KEY = ""
    with pytest.raises(banks.UnknownBank):
        banks.acquirer(name)
    with pytest.raises(banks.UnknownBank):
        banks.sender(f"acquirer:{name}")


def test_a_deployment_without_the_secret_has_no_sandbox_bank(settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(banks.UnknownBank):
        banks.get("sandbox")


def test_bank_without_signatures_supports_inquiry() -> None:
    """Else none of its payments would ever be credited."""
    known = {**banks.LIVE_BANKS, **banks.banks_with_inquiry()}
    unsigned = {name for name, bank in known.items() if not bank.signs_callbacks}
    assert unsigned == {"scb"}
    assert unsigned <= set(banks.banks_with_inquiry())
