"""Bank connections of live merchants: connect, find by the secret in the notification address, decrypt.

The address that the bank calls contains a secret. Only its SHA-256 is stored. Credentials are sealed.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _, gettext_noop

import banks
from audit_trail.acts import Act
from audit_trail.recording import recorded
from banks import CredentialField
from core import ids, vault
from core.http import client_addresses
from core.vault import CannotOpen
from merchants import secret_keys
from merchants.errors import CallerNotAllowed, MerchantNotFound
from merchants.models import STANDBY_IS_FIXED, BankConnection, CodeTerms, Merchant, Mode
from merchants.services import validated_networks

log = logging.getLogger("merchants")
SECRET_PREFIX, SECRET_LENGTH = "bep_", 43  # 256 random bits
_SECRET_SHAPE = re.compile(f"{SECRET_PREFIX}[0-9A-Za-z]{{{SECRET_LENGTH}}}", re.ASCII)
MAX_CALLERS = 50
BANK_IS_FIXED = ("keeps its bank and its biller id", STANDBY_IS_FIXED)
"""The messages of the triggers on merchants."""
BANK_IS_FIXED_MESSAGE = gettext_noop(
    "The merchant has made codes, so it keeps its bank and biller id: open another merchant."
)


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """The agreement of a merchant and its bank."""

    bank: str
    biller_id: str
    reference2: str = ""
    reference3: str = ""
    credentials: Mapping[str, object] = field(
        default_factory=dict, repr=False
    )  # as the adapter declares them
    callers: Sequence[str] = ()  # networks (CIDR); none means any


def connect(
    *,
    merchant_id: str,
    config: ConnectionConfig,
    now: datetime,
    renew_address: bool = False,
    keeps_secrets: bool = False,
    is_standby: bool = False,
) -> tuple[BankConnection, str | None]:
    """Connect a live merchant to its bank, or renew the connection, in one commit.

    The second value is the secret of the address, shown once. It is None if the old address stays: for the
    same bank, unless `renew_address`. `keeps_secrets`: secrets that the config leaves out stay as
    `kept_secrets` says. is_standby: it is the second bank of the merchant, for new codes while the first
    fails. A merchant that has made codes at a bank keeps it and its biller id there. Raises MerchantNotFound,
    and ValidationError by the field at fault.
    """
    callers = validated_terms(config)
    with transaction.atomic():
        merchant = _lock_live_merchant(merchant_id)
        is_standby = is_standby or config.bank == merchant.standby_bank
        before = merchant.standby_bank if is_standby else merchant.bank
        known = BankConnection.objects.filter(merchant=merchant, bank=before).first()
        kept = kept_secrets(known, config) if keeps_secrets and known is not None else {}
        credentials = _validated_credentials(config.bank, {**kept, **config.credentials})
        _assign_bank(merchant, config, is_standby=is_standby)
        connection = known or BankConnection(merchant=merchant, created_at=now)
        keeps_address = connection.bank == config.bank and not renew_address
        secret = None if keeps_address else SECRET_PREFIX + ids.random_text(SECRET_LENGTH)
        if secret is not None:
            connection.address_secret_digest = secret_keys.digest(secret)
        connection.bank, connection.callers, connection.updated_at = config.bank, callers, now
        connection.credentials_sealed = vault.seal(json.dumps(credentials), context=merchant.id)
        with recorded(Act.BANK_CONNECTED, known) as recording:
            recording.row = connection
            recording.details["biller_id"] = config.biller_id
            connection.save()
    return connection, secret


@transaction.atomic
def move_codes(merchant_id: str, *, to_standby: bool, now: datetime) -> None:
    """Let new codes carry the biller id of the stand-by, or of the first bank. Open codes keep theirs."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    if not merchant.standby_bank or merchant.uses_standby == to_standby:
        return
    with recorded(Act.CODES_MOVED, merchant):
        merchant.uses_standby, merchant.bank_changed_at = to_standby, now
        merchant.save(update_fields=["uses_standby", "bank_changed_at"])
    log.warning("new codes of merchant %s go to %s", merchant.pk, merchant.new_terms.bank)


def kept_secrets(connection: BankConnection, config: ConnectionConfig) -> dict[str, str]:
    """The stored secrets that a renewal may leave out: none for another bank or another address of its API.

    Otherwise somebody who knows no secret could have it sent to a server of their own.
    """
    stored = stored_credentials(connection)
    fields = banks.LIVE_BANKS[connection.bank].credential_fields
    if connection.bank != config.bank or any(
        each.is_url and _is_changed(each, stored, config) for each in fields
    ):
        return {}
    return {each.name: stored[each.name] for each in fields if each.is_secret and each.name in stored}


def notification_url(connection: BankConnection, secret: str) -> str:
    """The address that the bank must call. It contains the secret."""
    return f"{settings.BASE_URL}/banks/{connection.bank}/notifications/{secret}"


def find_by_secret(bank: str, secret: str) -> BankConnection:
    """Find the connection with this secret. Raises banks.UnknownBank for every error."""
    found = None
    if _SECRET_SHAPE.fullmatch(secret):
        connections = BankConnection.objects.select_related("merchant")
        found = connections.filter(bank=bank, address_secret_digest=secret_keys.digest(secret)).first()
    if found is None:
        raise banks.UnknownBank(name=bank)
    return found


def check_caller(connection: BankConnection, address: str) -> None:
    """Check that the bank may call from `address`. Raises CallerNotAllowed, also for an invalid address."""
    if connection.callers and not client_addresses.is_among(address, connection.callers):
        raise CallerNotAllowed()


def credentials_of(merchant_id: str, bank: str) -> banks.AdapterConfig | None:
    """The adapter config of a bank of a merchant, or None without a connection. `bank` may be its route."""
    at = BankConnection.objects.filter(merchant=merchant_id, bank=bank.removeprefix("bank:"))
    connection = at.select_related("merchant").first()
    return None if connection is None else decrypt(connection)


def decrypt(connection: BankConnection) -> banks.AdapterConfig:
    """The adapter config with readable credentials. Raises core.vault.CannotOpen."""
    credentials = json.loads(vault.open_sealed(connection.credentials_sealed, context=connection.merchant_id))
    biller_id = connection.merchant.terms_at(connection.bank).biller_id
    return banks.AdapterConfig(connection.bank, biller_id, credentials)


def stored_credentials(connection: BankConnection) -> dict[str, str]:
    """The readable credentials, or none if they cannot be read: then all must be entered again."""
    try:
        return dict(decrypt(connection).credentials)
    except CannotOpen:
        return {}


def described_credentials(connection: BankConnection) -> str:
    """The credentials in one line for staff. A secret is shown as `set`."""
    stored = stored_credentials(connection)
    if not stored:
        return _("They cannot be read: renew the connection.")
    lines = {name: value.partition("\n")[0] for name, value in stored.items()}
    return ", ".join(
        f"{need.name}: {'set' if need.is_secret else lines[need.name]}"
        for need in banks.LIVE_BANKS[connection.bank].credential_fields
        if need.name in lines
    )


def _is_changed(field_: CredentialField, stored: Mapping[str, str], config: ConnectionConfig) -> bool:
    given = config.credentials.get(field_.name, field_.default)
    try:
        return not isinstance(given, str) or field_.normalise(given) != stored.get(field_.name)
    except ValueError:
        return True


def validated_terms(config: ConnectionConfig) -> list[str]:
    """The networks as they are stored. Raises ValidationError for the first fault besides credentials."""
    if config.bank not in banks.LIVE_BANKS:
        raise ValidationError(
            {"bank": f"This bank does not exist. Known banks: {', '.join(sorted(banks.LIVE_BANKS))}."}
        )
    adapter = banks.LIVE_BANKS[config.bank]
    if not re.fullmatch("[0-9]{15}", config.biller_id):
        raise ValidationError({"biller_id": _("The bank gives 15 digits.")})
    for name, value in (("reference2", config.reference2), ("reference3", config.reference3)):
        if not re.fullmatch("[A-Z0-9]{0,20}", value):
            raise ValidationError({name: _("Up to 20 capital letters and digits.")})
    if adapter.reference3_help and not config.reference3:
        raise ValidationError({"reference3": _(adapter.reference3_help)})
    return validated_networks("callers", config.callers, MAX_CALLERS)


def _validated_credentials(bank: str, given: Mapping[str, object]) -> dict[str, str]:
    """The credentials as they are stored."""
    fields = banks.LIVE_BANKS[bank].credential_fields
    try:
        valid = banks.validate_credentials(fields, given)
    except banks.InvalidCredential as error:
        raise ValidationError({"credentials": str(error)}) from None
    for each in fields:
        try:
            each.check_host(valid[each.name], settings.BANK_API_HOSTS)
        except ValueError as error:
            raise ValidationError({"credentials": f"{each.name}: {error}"}) from None
    return valid


def _lock_live_merchant(merchant_id: str) -> Merchant:
    merchant = Merchant.objects.select_for_update(no_key=True).filter(pk=merchant_id).first()
    if merchant is None:
        raise MerchantNotFound(id=merchant_id)
    if merchant.mode != Mode.LIVE:
        raise ValidationError({"merchant": _("Test merchants are served by the sandbox bank.")})
    return merchant


def _assign_bank(merchant: Merchant, config: ConnectionConfig, *, is_standby: bool) -> None:
    """Set the bank, biller id and references of the merchant's future codes."""
    if Merchant.objects.exclude(pk=merchant.pk).of_biller(config.bank, config.biller_id):
        raise ValidationError({"biller_id": _("Another merchant has this biller id at this bank.")})
    prefix = "standby_" if is_standby else ""
    if is_standby and merchant.bank in ("", config.bank):
        raise ValidationError({"bank": _("The stand-by is at another bank than the first connection.")})
    field = "bank" if getattr(merchant, f"{prefix}bank") != config.bank else "biller_id"
    for name in CodeTerms._fields:
        setattr(merchant, prefix + name, getattr(config, name))
    try:
        with transaction.atomic():
            merchant.save(update_fields=[prefix + name for name in CodeTerms._fields])
    except IntegrityError as error:
        if not any(text in str(error) for text in BANK_IS_FIXED):
            raise
        raise ValidationError({field: _(BANK_IS_FIXED_MESSAGE)}) from None
