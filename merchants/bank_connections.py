"""Bank connections of live merchants: connect, find by the secret in the notification address, decrypt.

The address that the bank calls contains a secret. Only its SHA-256 is stored. Credentials are sealed.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

import banks
from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import client_addresses, ids, vault
from merchants.errors import CallerNotAllowed, MerchantNotFound
from merchants.models import BankConnection, Merchant, Mode

SECRET_PREFIX, SECRET_LENGTH = "door_", 43  # 256 random bits
_SECRET_SHAPE = re.compile(f"{SECRET_PREFIX}[0-9A-Za-z]{{{SECRET_LENGTH}}}", re.ASCII)
MAX_CALLERS = 50
BANK_IS_FIXED = "keeps its bank and its biller id"
"""The message of the trigger on merchants."""
BANK_IS_FIXED_MESSAGE = (
    "The merchant has made codes, so it keeps its bank and biller id: open another merchant."
)


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """The agreement of a merchant and its bank. callers: networks (CIDR); none means any.

    credentials: by name, as the adapter declares them.
    """

    bank: str
    biller_id: str
    reference2: str = ""
    reference3: str = ""
    credentials: Mapping[str, object] = field(default_factory=dict, repr=False)
    callers: Sequence[str] = ()


def connect(
    *, merchant_id: str, config: ConnectionConfig, now: datetime, renew_address: bool = False
) -> tuple[BankConnection, str | None]:
    """Connect a live merchant to its bank, or renew the connection, in one commit.

    The second value is the secret of the address, shown once. It is None if the old address stays: for the
    same bank, unless `renew_address`. A merchant that has made codes keeps its bank and biller id. Raises
    MerchantNotFound, and ValidationError by the field at fault.
    """
    credentials, callers = _validated(config)
    with transaction.atomic():
        merchant = _lock_live_merchant(merchant_id)
        _assign_bank(merchant, config)
        known = BankConnection.objects.filter(merchant=merchant).first()
        connection = known or BankConnection(merchant=merchant, created_at=now)
        keeps_address = connection.bank == config.bank and not renew_address
        secret = None if keeps_address else SECRET_PREFIX + ids.random_text(SECRET_LENGTH)
        if secret is not None:
            connection.address_secret_digest = _digest(secret)
        connection.bank, connection.callers, connection.updated_at = config.bank, callers, now
        connection.credentials_sealed = vault.seal(json.dumps(credentials), context=merchant.id)
        with recorded(Act.BANK_CONNECTED, known) as recording:
            recording.row = connection
            recording.details["biller_id"] = merchant.biller_id
            connection.save()
    return connection, secret


def find_by_secret(bank: str, secret: str) -> BankConnection:
    """Find the connection with this secret. Raises banks.UnknownBank for every error."""
    found = None
    if _SECRET_SHAPE.fullmatch(secret):
        connections = BankConnection.objects.select_related("merchant")
        found = connections.filter(bank=bank, address_secret_digest=_digest(secret)).first()
    if found is None:
        raise banks.UnknownBank(name=bank)
    return found


def check_caller(connection: BankConnection, address: str) -> None:
    """Check that the bank may call from `address`. Raises CallerNotAllowed, also for an invalid address."""
    if connection.callers and not client_addresses.is_among(address, connection.callers):
        raise CallerNotAllowed()


def credentials_of(merchant_id: str) -> banks.AdapterConfig | None:
    """The adapter config of a merchant's bank, or None without a connection."""
    connection = BankConnection.objects.select_related("merchant").filter(pk=merchant_id).first()
    return None if connection is None else decrypt(connection)


def decrypt(connection: BankConnection) -> banks.AdapterConfig:
    """The adapter config with readable credentials. Raises core.vault.CannotOpen."""
    credentials = json.loads(vault.open_sealed(connection.credentials_sealed, context=connection.merchant_id))
    return banks.AdapterConfig(connection.bank, connection.merchant.biller_id, credentials)


def masked_credentials(connection: BankConnection) -> dict[str, str]:
    """The credentials for staff. A secret is shown as `set`."""
    credentials = decrypt(connection).credentials
    return {
        need.name: "set" if need.is_secret else credentials[need.name].split("\n")[0]
        for need in banks.LIVE_BANKS[connection.bank].credential_fields
        if need.name in credentials
    }


def _validated(config: ConnectionConfig) -> tuple[dict[str, str], list[str]]:
    """Credentials and networks as they are stored."""
    if config.bank not in banks.LIVE_BANKS:
        raise ValidationError(
            {"bank": f"This bank does not exist. Known banks: {', '.join(sorted(banks.LIVE_BANKS))}."}
        )
    adapter = banks.LIVE_BANKS[config.bank]
    if not re.fullmatch("[0-9]{15}", config.biller_id):
        raise ValidationError({"biller_id": "The bank gives 15 digits."})
    for name, value in (("reference2", config.reference2), ("reference3", config.reference3)):
        if not re.fullmatch("[A-Z0-9]{0,20}", value):
            raise ValidationError({name: "Up to 20 capital letters and digits."})
    if adapter.reference3_help and not config.reference3:
        raise ValidationError({"reference3": adapter.reference3_help})
    try:
        return banks.validate_credentials(adapter.credential_fields, config.credentials), _networks(
            config.callers
        )
    except banks.InvalidCredential as error:
        raise ValidationError({"credentials": str(error)}) from None


def _networks(callers: Sequence[str]) -> list[str]:
    if len(callers) > MAX_CALLERS:
        raise ValidationError({"callers": f"At most {MAX_CALLERS} networks."})
    try:
        return client_addresses.normalized_networks(callers)
    except ValueError as error:
        raise ValidationError({"callers": f"{error}."}) from None


def _lock_live_merchant(merchant_id: str) -> Merchant:
    merchant = Merchant.objects.select_for_update(no_key=True).filter(pk=merchant_id).first()
    if merchant is None:
        raise MerchantNotFound(id=merchant_id)
    if merchant.mode != Mode.LIVE:
        raise ValidationError({"merchant": "Test merchants are served by the sandbox bank."})
    return merchant


def _assign_bank(merchant: Merchant, config: ConnectionConfig) -> None:
    """Set the bank, biller id and references of the merchant's future codes."""
    others = Merchant.objects.filter(bank=config.bank, biller_id=config.biller_id).exclude(pk=merchant.pk)
    if others.exists():
        raise ValidationError({"biller_id": "Another merchant has this biller id at this bank."})
    field = "bank" if merchant.bank != config.bank else "biller_id"
    merchant.bank, merchant.biller_id = config.bank, config.biller_id
    merchant.reference2, merchant.reference3 = config.reference2, config.reference3
    try:
        with transaction.atomic():
            merchant.save(update_fields=["bank", "biller_id", "reference2", "reference3"])
    except IntegrityError as error:
        if BANK_IS_FIXED not in str(error):
            raise
        raise ValidationError({field: BANK_IS_FIXED_MESSAGE}) from None


def _digest(secret: str) -> bytes:
    """256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()
