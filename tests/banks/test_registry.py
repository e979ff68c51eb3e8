from typing import Any

import pytest

import banks


def test_the_sandbox_bank_is_found_by_its_name() -> None:
    assert banks.get("sandbox").answer(None) == {"status": "parked"}


@pytest.mark.parametrize("name", ["", "Sandbox", "scb"])
def test_a_bank_without_an_adapter_is_unknown(name: str) -> None:
    with pytest.raises(banks.UnknownBank):
        banks.get(name)


def test_a_deployment_without_the_secret_has_no_sandbox_bank(settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(banks.UnknownBank):
        banks.get("sandbox")
