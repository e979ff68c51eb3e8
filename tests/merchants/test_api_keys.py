"""Keys: their shape, how they are issued, rolled, revoked and refused."""

import json
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from core import clock as our_clock
from merchants import secret_keys, services
from merchants.models import ApiKey, Merchant
from tests.conftest import Shop, open_shop


def status_with(shop: Shop, secret_key: str) -> int:
    return int(Shop(shop.merchant, secret_key, shop.http).get("/v1/payments").status_code)


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    printed: dict[str, Any] = json.loads(out.getvalue())
    return printed


def test_api_key_has_a_prefix_and_a_checksum() -> None:
    key = secret_keys.generate("test")
    assert key.startswith("tq_test_")
    assert len(key) == 8 + 46
    assert secret_keys.is_well_formed(key)
    broken = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert not secret_keys.is_well_formed(broken)


def test_only_a_digest_of_the_api_key_is_stored(shop: Shop) -> None:
    key = ApiKey.objects.get()
    assert bytes(key.digest) == secret_keys.digest(shop.secret_key)
    assert shop.secret_key[16:] not in str(vars(key))


def test_revoked_api_key_is_refused_at_once(shop: Shop) -> None:
    assert status_with(shop, shop.secret_key) == 200
    run("revoke_key", secret_keys.public_id(shop.secret_key))
    assert status_with(shop, shop.secret_key) == 401


def test_api_key_is_refused_from_expires_at(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        printed = run("issue_key", shop.merchant.id, "--expires-in-hours", "1.5")
        assert printed["expires_at"] == "2026-11-21T06:30:00.000Z"
        assert status_with(shop, printed["secret_key"]) == 200
        clock.move_to(noon + timedelta(minutes=90))
        assert status_with(shop, printed["secret_key"]) == 401
        assert status_with(shop, shop.secret_key) == 200


def test_rolled_api_key_works_until_the_end_of_the_overlap(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        printed = run("roll_key", secret_keys.public_id(shop.secret_key), "--overlap-hours", "2")
        clock.move_to(noon + timedelta(hours=1, minutes=59))
        assert [status_with(shop, key) for key in (shop.secret_key, printed["secret_key"])] == [200, 200]
        clock.move_to(noon + timedelta(hours=2))
        assert [status_with(shop, key) for key in (shop.secret_key, printed["secret_key"])] == [401, 200]


@pytest.mark.parametrize("hours", [-1, 169])
def test_key_overlap_longer_than_a_week_is_refused(shop: Shop, hours: int) -> None:
    key = ApiKey.objects.get()
    with pytest.raises(ValueError, match="168"):
        services.roll_key(key_id=key.id, overlap_hours=hours, now=our_clock.now())
    assert ApiKey.objects.count() == 1


def test_api_key_last_used_at_is_updated_once_a_minute(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        shop.get("/v1/payments")
        clock.move_to(noon + timedelta(seconds=59))
        shop.get("/v1/payments")
        assert ApiKey.objects.get().last_used_at == noon
        clock.move_to(noon + timedelta(seconds=60))
        shop.get("/v1/payments")
        assert ApiKey.objects.get().last_used_at == noon + timedelta(seconds=60)


@pytest.mark.django_db
def test_create_merchant_prints_merchant_id_and_secret_key() -> None:
    printed = run("create_merchant", "--name", "Khao Soi", "--mode", "live")
    merchant = Merchant.objects.get(pk=printed["merchant_id"])
    assert (merchant.mode, merchant.bank) == ("live", "")
    assert printed["secret_key"].startswith("tq_live_")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("create_merchant", ["--name", "x" * 141, "--mode", "test"], "140"),
        ("issue_key", ["mch_unknown"], "No merchant"),
        ("revoke_key", ["unknown"], "No key"),
        ("roll_key", ["unknown"], "No key"),
    ],
)
def test_merchant_commands_refuse_invalid_arguments(command: str, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command(command, *arguments)
    assert not Merchant.objects.exists()


def test_live_merchant_without_bank_cannot_create_qr_codes(db: None) -> None:
    refused = open_shop("New", mode="live").post("/v1/qr-codes", {"amount": 100, "currency": "THB"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bank_not_configured")


def test_rolled_api_key_keeps_the_lifetime(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        issued = run("issue_key", shop.merchant.id, "--expires-in-hours", "24")
        clock.move_to(noon + timedelta(hours=12))
        rolled = run("roll_key", issued["key_id"], "--overlap-hours", "1")
        assert rolled["expires_at"] == "2026-11-22T17:00:00.000Z"


def test_expired_api_key_cannot_be_rolled(shop: Shop) -> None:
    public_id = secret_keys.public_id(shop.secret_key)
    run("revoke_key", public_id)
    with pytest.raises(CommandError, match="is expired or revoked"):
        call_command("roll_key", public_id)
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "1e300"])
def test_api_key_with_invalid_lifetime_is_not_issued(shop: Shop, hours: str) -> None:
    with pytest.raises(CommandError, match="--expires-in-hours must be more than 0"):
        run("issue_key", shop.merchant.id, f"--expires-in-hours={hours}")
    assert shop.merchant.keys.count() == 1
