from typing import Any

import pytest

import banks
from banks import Link
from banks.omise import Omise
from banks.sandbox_cards import SandboxAcquirer
from tests.banks import bbl_stand_in, scb_stand_in


def test_the_sandbox_bank_is_found_by_its_name() -> None:
    assert banks.get("sandbox").answer(None) == {"status": "parked"}


@pytest.mark.parametrize("name", ["", "Sandbox", "scb", "kbank"])
def test_a_bank_without_an_adapter_is_unknown(name: str) -> None:
    with pytest.raises(banks.UnknownBank):
        banks.get(name)


def test_a_live_bank_serves_only_the_merchants_that_are_linked_to_it() -> None:
    links = [scb_stand_in.LINK, Link("bbl", bbl_stand_in.BILLER, bbl_stand_in.credentials())]
    for link in links:
        assert isinstance(banks.get(link.bank, link), banks.LIVE[link.bank])
    for name, link in (("scb", links[1]), ("bbl", links[0]), ("kbank", links[0])):
        with pytest.raises(banks.UnknownBank):
            banks.get(name, link)


@pytest.mark.parametrize("name", list(banks.LIVE))
def test_a_live_bank_says_what_it_needs_and_how_it_proves_itself(name: str) -> None:
    bank = banks.LIVE[name]
    assert bank.title and bank.proof and all(need.help for need in bank.needs)
    with pytest.raises(banks.Unmet, match="is missing"):
        banks.met(bank.needs, {})


@pytest.mark.parametrize(("name", "knows"), [("scb", True), ("sandbox", True), ("bbl", False), ("", False)])
def test_some_banks_know_slips(name: str, knows: bool) -> None:
    assert banks.knows_slips(name) == knows


def test_acquirers_charge_cards_and_send_money_back_to_them(settings: Any) -> None:
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


def test_bank_that_does_not_sign_its_callbacks_can_be_asked() -> None:
    """Else none of its payments would ever be credited."""
    known = {**banks.LIVE, **banks.asked()}
    unsigned = {name for name, bank in known.items() if not bank.signs_callbacks}
    assert unsigned == {"scb"}
    assert unsigned <= set(banks.asked())
