"""Merchants and their keys: create, issue, roll, revoke."""

from datetime import datetime, timedelta

from django.db import transaction

from core import ids, security_log
from core.security_log import SecurityEvent
from merchants import secrets
from merchants.errors import KeyNotFound, KeyNotRollable, MerchantNotFound
from merchants.models import ApiKey, LateMoney, Merchant, Mode

SANDBOX = "sandbox"
LONGEST_OVERLAP_HOURS = 168


@transaction.atomic
def create_merchant(*, name: str, mode: str, now: datetime) -> tuple[Merchant, str]:
    """A merchant with its first key; the key is returned once and can never be read again.

    A test merchant is ready at once, with a biller id at the sandbox bank; a live one waits for its bank.
    """
    merchant = Merchant(id=ids.new("mch_", now), name=name, mode=mode, created_at=now)
    if mode == Mode.TEST:
        merchant.bank, merchant.biller_id = SANDBOX, ids.random_text(15, "0123456789")
    merchant.full_clean(validate_constraints=False)
    merchant.save(force_insert=True)
    _, secret = issue_key(merchant=merchant, now=now)
    return merchant, secret


def issue_key(*, merchant: Merchant, now: datetime, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """Another key beside those that exist. The second value is the secret, shown once."""
    secret = secrets.new(merchant.mode)
    key = ApiKey.objects.create(
        id=ids.new("key_", now),
        merchant=merchant,
        public_id=secrets.public_id(secret),
        digest=secrets.digest(secret),
        created_at=now,
        expires_at=expires_at,
    )
    _record(SecurityEvent.KEY_ISSUED, key)
    return key, secret


@transaction.atomic
def roll_key(*, key_id: str, overlap_hours: int, now: datetime) -> tuple[ApiKey, str]:
    """A new key in the place of `key_id`, which works for `overlap_hours` (0 to 168) more.

    A key that was to expire hands its lifetime on. Raises KeyNotFound, KeyNotRollable.
    """
    if not 0 <= overlap_hours <= LONGEST_OVERLAP_HOURS:
        raise ValueError(f"The overlap is 0 to {LONGEST_OVERLAP_HOURS} hours.")
    key = _locked(key_id)
    if not key.is_usable(now):
        raise KeyNotRollable(id=key.id)
    lifetime = None if key.expires_at is None else key.expires_at - key.created_at
    until = now + timedelta(hours=overlap_hours)
    key.expires_at = until if key.expires_at is None else min(key.expires_at, until)
    key.save(update_fields=["expires_at"])
    _record(SecurityEvent.KEY_ROLLED, key)
    return issue_key(merchant=key.merchant, now=now, expires_at=None if lifetime is None else now + lifetime)


@transaction.atomic
def revoke_key(*, key_id: str, now: datetime) -> ApiKey:
    """End a key at once. Revoking it again changes nothing."""
    key = _locked(key_id)
    if key.revoked_at is None:
        key.revoked_at = now
        key.save(update_fields=["revoked_at"])
        _record(SecurityEvent.KEY_REVOKED, key)
    return key


def decide_late_money(*, merchant_id: str, late_money: LateMoney) -> None:
    """What becomes, from now on, of money paid after its code had expired."""
    Merchant.objects.filter(pk=merchant_id).update(late_money=late_money)


def merchant_by_id(merchant_id: str) -> Merchant:
    """Raises MerchantNotFound."""
    merchant = Merchant.objects.filter(pk=merchant_id).first()
    if merchant is None:
        raise MerchantNotFound(id=merchant_id)
    return merchant


def _record(event: SecurityEvent, key: ApiKey) -> None:
    subject = f"key:{key.public_id}"
    security_log.record_on_commit(event, subject=subject, merchant_id=key.merchant_id)


def _locked(key_id: str) -> ApiKey:
    """By id, or by the public part that a person can see in a key."""
    field = "pk" if key_id.startswith("key_") else "public_id"
    key: ApiKey | None = (
        ApiKey.objects.select_for_update(of=["self"])
        .select_related("merchant")
        .filter(**{field: key_id})
        .first()
    )
    if key is None:
        raise KeyNotFound(id=key_id)
    return key
