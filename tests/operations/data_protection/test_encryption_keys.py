"""Keys that cannot open the sealed data are refused before anything is sealed with them."""

import io
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import Settings

from config import checks
from core import vault
from core.commands import SealingCommand
from operations.data_protection import resealing
from operations.models import EncryptionKeyCheck
from tests.conftest import Shop, open_shop
from tests.factories import qr_request
from tests.webhooks.builders import make_endpoint

OLD, NEW, WRONG = (vault.new_key() for _ in range(3))
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def old_key(settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]


@pytest.fixture
def sealed_rows(shop: Shop) -> None:
    """A database with sealed rows and without a key check."""
    shop.post("/v1/qr-codes", qr_request(client_bank_account="1234567890"), key="order-1")


def wrong_keys() -> list[CheckMessage]:
    """Not the error about the database of the tests, which is not durable."""
    found = checks.usable_database(None, databases=["default"])
    return [error for error in found if error.id != "qr.E013"]


def refusals() -> list[str]:
    return [str(error.id) for error in wrong_keys()]


def readiness() -> bool:
    found: bool = Client().get("/readyz").json()["checks"]["encryption_keys"]["ok"]
    return found


def reseal() -> str:
    shown = io.StringIO()
    call_command("reseal", stdout=shown)
    return shown.getvalue()


@pytest.mark.slow
def test_first_start_writes_encryption_key_check(settings: Settings) -> None:
    assert refusals() == []
    resealing.write_key_check()
    resealing.write_key_check()
    assert (EncryptionKeyCheck.objects.count(), refusals(), readiness()) == (1, [], True)
    settings.FIELD_ENCRYPTION_KEYS = [WRONG]
    assert (refusals(), readiness()) == (["qr.E082"], False)


def test_wrong_encryption_key_is_refused_with_hint(settings: Settings) -> None:
    resealing.write_key_check()
    settings.FIELD_ENCRYPTION_KEYS = [WRONG]
    (error,) = wrong_keys()
    assert "do not open what is in the database" in error.msg
    assert "Changing the encryption key" in str(error.hint)
    assert WRONG not in f"{error.msg} {error.hint}"


@pytest.mark.slow
def test_encryption_keys_are_checked_against_sealed_rows_without_key_check(
    sealed_rows: None, settings: Settings
) -> None:
    assert refusals() == []
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert refusals() == []
    settings.FIELD_ENCRYPTION_KEYS = [WRONG]
    (error,) = wrong_keys()
    assert "do not open the rows of" in error.msg
    assert not EncryptionKeyCheck.objects.exists()


def test_wrong_encryption_key_is_found_by_oldest_and_newest_rows(
    sealed_rows: None, settings: Settings
) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [WRONG]
    make_endpoint(open_shop("Larb Palace"))
    assert refusals() == ["qr.E082"]
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    assert refusals() == ["qr.E082"]
    settings.FIELD_ENCRYPTION_KEYS = [OLD, WRONG]
    assert refusals() == []


def test_new_encryption_key_beside_the_old_key_is_accepted(settings: Settings) -> None:
    resealing.write_key_check()
    for keys in ([OLD, NEW], [NEW, OLD]):
        settings.FIELD_ENCRYPTION_KEYS = keys
        assert (refusals(), readiness()) == ([], True)


def test_old_encryption_key_may_be_dropped_only_after_reseal(settings: Settings) -> None:
    resealing.write_key_check()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert refusals() == ["qr.E082"]
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert reseal().splitlines()[-2].startswith("operations.EncryptionKeyCheck: 1 resealed")
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert (refusals(), readiness()) == ([], True)


def test_encryption_key_check_is_sealed_with_the_oldest_key(sealed_rows: None, settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    resealing.write_key_check()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert refusals() == ["qr.E082"]


@pytest.mark.slow
def test_reseal_keeps_key_check_while_tokens_cannot_be_opened(sealed_rows: None, settings: Settings) -> None:
    resealing.write_key_check()
    settings.FIELD_ENCRYPTION_KEYS = [WRONG]
    make_endpoint(open_shop("Larb Palace"))
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match="No key of FIELD_ENCRYPTION_KEYS opens"):
        reseal()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert refusals() == ["qr.E082"]


def test_second_encryption_key_check_row_is_refused() -> None:
    resealing.write_key_check()
    with pytest.raises(IntegrityError, match="encryption_key_check_single_row"), transaction.atomic():
        EncryptionKeyCheck.objects.create(id=2, text_sealed="x")


def test_sealing_commands_check_the_encryption_keys() -> None:
    """Each command is a SealingCommand, or is listed here because it seals nothing."""
    seals_nothing = {
        *(
            "audit",
            "migrate",
            "invite_superuser",
            "lift_lockout",
            "set_role_limits",
            "seed_demo",
            "write_reference",
        ),
        *("write_roles", "daily_close", "close_month", "messages", "open_references", "page_origins"),
        *("compare_orders", "pause_transfers", "resume_transfers", "database_roles", "migrate"),
        *("create_merchant", "issue_key", "revoke_key", "roll_key", "reconcile", "proof", "shadow"),
        *("sandbox_bank", "sandbox_transfer"),
    }
    own = {"reseal"}  # it tries each row with all keys
    found = {name for name, app in get_commands().items() if (ROOT / str(app)).is_dir()}
    unchecked = {
        name
        for name in found
        if not isinstance(load_command_class(get_commands()[name], name), SealingCommand)
    }
    assert unchecked == seals_nothing | own
    assert found - unchecked == {
        *("import_statement", "connect_bank", "payout_accounts", "record_lost_order", "erase"),
        *("export_merchant", "import_merchant"),
    }
