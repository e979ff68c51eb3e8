"""Claim links through the API and the console: who makes them, how long they live, how they end."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import vault
from idempotency.models import IdempotencyKey
from refunds.models import ClaimLink
from tests.conftest import SandboxBankClient, Shop
from tests.error_messages import check_error
from tests.reconciliation.claims.builders import claim_of, waiting_refund
from tests.refunds.builders import PAYEE, REFUNDS, RefundShop, error_of
from tests.request_log.builders import log_text

pytestmark = pytest.mark.slow


def path_of(refund: dict[str, Any]) -> str:
    return f"{REFUNDS}/{refund['refund_id']}/claim-link"


def test_link_is_made_for_a_refund_that_waits_and_revealed_by_get(
    shop: Shop, bank: SandboxBankClient, settings: Any, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False):
        refund, _reference = waiting_refund(shop, bank)
        made = shop.post(path_of(refund), {"expires_in_hours": 2}).json()
        assert made == {
            "refund_id": refund["refund_id"],
            "status": "open",
            "tries_left": 5,
            "created_at": "2026-11-21T05:00:00.000Z",
            "expires_at": "2026-11-21T07:00:00.000Z",
            "used_at": None,
            "revoked_at": None,
        }
        found = shop.get(path_of(refund)).json()
    assert found.pop("claim_url").startswith(f"{settings.BASE_URL}/claim/")
    assert found == made


def test_token_is_stored_hashed_and_sealed_and_in_no_stored_answer(
    shop: Shop, bank: SandboxBankClient
) -> None:
    refund, _reference = waiting_refund(shop, bank)
    shop.post(path_of(refund), {}, key="k")
    token = shop.get(path_of(refund)).json()["claim_url"].rpartition("/")[2]
    row = ClaimLink.objects.values().get()
    assert token not in str(row)
    assert vault.open_sealed(row["token_sealed"], context=row["id"]) == token
    assert token not in str(list(IdempotencyKey.objects.values()))
    assert token not in log_text()


def test_same_idempotency_key_makes_one_link(shop: Shop, bank: SandboxBankClient) -> None:
    refund, _reference = waiting_refund(shop, bank)
    answers = {shop.post(path_of(refund), {}, key="k").content for _ in range(2)}
    assert (len(answers), ClaimLink.objects.count()) == (1, 1)


def test_refund_with_an_account_gets_no_link(shop: Shop, bank: SandboxBankClient) -> None:
    seller = RefundShop(shop, bank)
    refund = seller.refund(seller.paid())
    assert error_of(shop.post(path_of(refund), {})) == (400, "refund_not_addressable", None)
    answer = shop.get(path_of(refund))
    assert answer.status_code == 404
    check_error(answer.json(), "claim_link_not_found", id=refund["refund_id"])


@pytest.mark.parametrize("hours", [0, 721, "2", 1.5])
def test_hours_out_of_range_are_refused(shop: Shop, bank: SandboxBankClient, hours: Any) -> None:
    refund, _reference = waiting_refund(shop, bank)
    answer = shop.post(path_of(refund), {"expires_in_hours": hours})
    assert error_of(answer) == (400, "invalid_expires_in_hours", "expires_in_hours")
    assert not ClaimLink.objects.exists()


def test_new_link_ends_the_one_before(shop: Shop, bank: SandboxBankClient) -> None:
    first = claim_of(shop, bank)
    shop.post(path_of(first.refund), {})
    assert first.read().status_code == 404
    assert first.send(last_digits="7890").status_code == 404
    newest = shop.get(path_of(first.refund)).json()
    assert newest["status"] == "open"
    assert first.token not in newest["claim_url"]


def test_link_expires_and_has_no_page_then(shop: Shop, bank: SandboxBankClient, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        claim = claim_of(shop, bank, expires_in_hours=1)
        clock.move_to(noon + timedelta(minutes=59))
        assert claim.read().status_code == 200
        clock.move_to(noon + timedelta(hours=1))
        assert claim.read().status_code == claim.send(last_digits="7890").status_code == 404
        assert shop.get(path_of(claim.refund)).json()["status"] == "expired"


def test_account_that_the_merchant_names_first_ends_the_claim(shop: Shop, bank: SandboxBankClient) -> None:
    claim = claim_of(shop, bank)
    assert shop.post(f"{REFUNDS}/{claim.refund['refund_id']}/destination", PAYEE).status_code == 200
    assert claim.heading() == "The shop has named an account"
    assert claim.send(last_digits="7890").status_code == 303
    assert not ClaimLink.objects.get().used_at


def test_link_of_another_merchant_does_not_exist(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    claim = claim_of(shop, bank)
    assert error_of(other_shop.get(path_of(claim.refund)))[:2] == (404, "refund_not_found")
    assert error_of(other_shop.post(path_of(claim.refund), {}))[:2] == (404, "refund_not_found")
    assert json.loads(shop.get(path_of(claim.refund)).content)["status"] == "open"
