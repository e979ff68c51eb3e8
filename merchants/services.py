"""Create and rename merchants; issue, roll and revoke their keys. The scopes of a key never change."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from audit_trail import recording, values
from audit_trail.acts import Act, ActRefused
from audit_trail.recording import recorded
from core import ids, plain_text, request_context
from core.database import rows
from core.http import client_addresses
from core.http.scopes import Scope
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from core.thai import tax_ids
from merchants import page_origins, secret_keys
from merchants.errors import KeyNotFound, KeyNotRollable, MerchantMoved, MerchantNotFound
from merchants.models import ApiKey, LateMoneyPolicy, Merchant, Mode

SANDBOX = "sandbox"
MAX_OVERLAP_HOURS, DEFAULT_OVERLAP_HOURS = 168, 24
MAX_NETWORKS = 20
ALL_SCOPES = tuple(Scope.values)
POLICIES = {
    "late_money": Act.LATE_MONEY_CHANGED,
    "may_withdraw_unsettled": Act.UNSETTLED_CHANGED,
    "refuses_open_reference": Act.OPEN_REFERENCES_CHANGED,
    "holds_payers": Act.HELD_PAYERS_CHANGED,
    "shows_proof": Act.PROOF_SWITCHED,
}
"""What happens to codes, money and pages of a merchant, by the column, with the act that changes it."""


@transaction.atomic
def create_merchant(
    *,
    name: str,
    mode: str,
    now: datetime,
    late_money: str = LateMoneyPolicy.REVIEW,
    scopes: Iterable[str] = ALL_SCOPES,
    networks: Sequence[str] = (),
) -> tuple[Merchant, str]:
    """Create a merchant with its first key. The secret is returned once and cannot be read later.

    Raises ValidationError by the field at fault.
    """
    merchant = add_merchant(name=name, mode=mode, late_money=late_money, now=now)
    _key, secret = issue_key(merchant=merchant, now=now, scopes=scopes, networks=networks)
    return merchant, secret


def add_merchant(*, name: str, mode: str, late_money: str, now: datetime) -> Merchant:
    """Create a merchant without a key. Raises ValidationError by the field at fault.

    A test merchant gets a biller id at the sandbox bank. A live one needs a bank connection.
    """
    merchant = Merchant(
        id=ids.new("mch_", now), name=_validated_name(name), mode=mode, late_money=late_money, created_at=now
    )
    if mode == Mode.TEST:
        merchant.bank, merchant.biller_id = SANDBOX, ids.random_text(15, "0123456789")
    merchant.full_clean(validate_constraints=False)
    with recorded(Act.MERCHANT_CREATED) as created:
        merchant.save(force_insert=True)
        created.row = merchant
    return merchant


@transaction.atomic
def rename_merchant(*, merchant_id: str, name: str) -> None:
    """Give a merchant another name. Raises ValidationError by the field at fault."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    with recorded(Act.MERCHANT_RENAMED, merchant):
        merchant.name = _validated_name(name)
        merchant.full_clean(validate_constraints=False)
        merchant.save(update_fields=["name"])


@transaction.atomic
def issue_key(
    *,
    merchant: Merchant,
    now: datetime,
    expires_at: datetime | None = None,
    scopes: Iterable[str] = ALL_SCOPES,
    networks: Sequence[str] = (),
) -> tuple[ApiKey, str]:
    """Issue another key. The second value is the secret, shown once.

    scopes: default is all. networks: CIDRs from which the key may be used; none means any. Raises
    ValidationError by the field at fault.
    """
    secret = secret_keys.generate(merchant.mode)
    key = ApiKey.objects.create(
        id=ids.new("key_", now),
        merchant=merchant,
        public_id=secret_keys.public_id(secret),
        digest=secret_keys.digest(secret),
        created_at=now,
        expires_at=expires_at,
        scopes=_validated_scopes(scopes),
        networks=validated_networks("networks", networks, MAX_NETWORKS),
        issued_by=request_context.current().actor,
    )
    recording.write(Act.KEY_ISSUED, key, after=values.filled(values.of_row(key)))
    _record(SecurityEvent.KEY_ISSUED, key, [*key.scopes, *key.networks])
    return key, secret


@transaction.atomic
def roll_key(*, key_id: str, overlap_hours: int, now: datetime) -> tuple[ApiKey, str]:
    """Issue a new key in place of `key_id`, which stays valid for `overlap_hours` (0 to 168).

    The new key has the scopes, networks and lifetime of the old one. Raises KeyNotFound, KeyNotRollable.
    """
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise ValueError(f"The overlap is 0 to {MAX_OVERLAP_HOURS} hours.")
    key = _lock_key(key_id)
    if not key.is_usable(now):
        raise KeyNotRollable(id=key.id)
    lifetime = None if key.expires_at is None else key.expires_at - key.created_at
    until = now + timedelta(hours=overlap_hours)
    with recorded(Act.KEY_ROLLED, key):
        key.expires_at = until if key.expires_at is None else min(key.expires_at, until)
        key.save(update_fields=["expires_at"])
    _record(SecurityEvent.KEY_ROLLED, key)
    expires_at = None if lifetime is None else now + lifetime
    return issue_key(
        merchant=key.merchant, now=now, expires_at=expires_at, scopes=key.scopes, networks=key.networks
    )


@transaction.atomic
def revoke_key(*, key_id: str, now: datetime) -> ApiKey:
    """End a key at once. Revoking it again changes nothing. Raises KeyNotFound."""
    key = _lock_key(key_id)
    if key.revoked_at is None:
        with recorded(Act.KEY_REVOKED, key):
            key.revoked_at, key.revoked_by = now, request_context.current().actor
            key.save(update_fields=["revoked_at", "revoked_by"])
        _record(SecurityEvent.KEY_REVOKED, key)
    return key


def set_policy(merchant_id: str, **policy: object) -> None:
    """Set one of POLICIES from now on. Raises ActRefused for the proof page of a test merchant."""
    (name,) = policy
    merchant = Merchant.objects.get(pk=merchant_id)
    if name == "shows_proof" and merchant.mode != Mode.LIVE:
        raise ActRefused(_("Only a live merchant has a proof page."))
    with recorded(POLICIES[name], merchant):
        Merchant.objects.filter(pk=merchant_id).update(**policy)


@transaction.atomic
def suspend(merchant_id: str, *, now: datetime) -> None:
    """Refuse its keys, new codes, cards and payouts from now on. A repeat changes nothing.

    Orders of refunds and withdrawals wait. Money that arrives is credited.
    """
    _set_suspended(Act.MERCHANT_SUSPENDED, merchant_id, now)


@transaction.atomic
def lift_suspension(merchant_id: str) -> None:
    """All is as it was before the suspension. Orders that waited are sent."""
    _set_suspended(Act.SUSPENSION_LIFTED, merchant_id, None)


def _set_suspended(act: Act, merchant_id: str, at: datetime | None) -> None:
    # This lock waits for the orders that are submitted at this moment (`lock_suspension`).
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    if merchant.moved_at is not None:
        raise MerchantMoved()
    if (merchant.suspended_at is None) != (at is None):
        with recorded(act, merchant):
            merchant.suspended_at = at
            merchant.save(update_fields=["suspended_at"])


def lock_suspension(merchant_id: str) -> bool:
    """Whether it is suspended. That does not change until the caller's transaction ends."""
    found = rows.run(
        "SELECT suspended_at IS NOT NULL FROM merchants_merchant WHERE id = %s FOR SHARE", [merchant_id]
    )
    return bool(found.fetchone() == (True,))


def set_page_origins(merchant_id: str, texts: Sequence[str]) -> Merchant:
    """Set the sites that may frame the payment page and that it links back to. Raises ValueError."""
    merchant = Merchant.objects.get(pk=merchant_id)
    with recorded(Act.PAGE_ORIGINS_CHANGED, merchant):
        merchant.page_origins = page_origins.parse(texts, is_live=merchant.mode == Mode.LIVE)
        merchant.save(update_fields=["page_origins"])
    return merchant


@transaction.atomic
def set_tax_details(merchant_id: str, *, tax_id: str, branch: str, withholds: bool) -> None:
    """Set what the sheets for the accountant say about the taxes of a merchant.

    Spaces and dashes do not count. Raises ValidationError by the field at fault.
    """
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    with recorded(Act.TAX_DETAILS_SET, merchant):
        merchant.tax_id, merchant.tax_branch = re.sub(r"[\s-]", "", tax_id), branch or tax_ids.HEAD_OFFICE
        merchant.withholds_tax = withholds
        if merchant.tax_id and not tax_ids.is_valid(merchant.tax_id):
            raise ValidationError(
                {"tax_id": _("This is no tax id: it has 13 digits, and the last checks the others.")}
            )
        if not re.fullmatch(tax_ids.BRANCH, merchant.tax_branch):
            raise ValidationError({"branch": _("The number of a branch has 5 digits.")})
        merchant.save(update_fields=["tax_id", "tax_branch", "withholds_tax"])


def find_merchant(merchant_id: str) -> Merchant:
    """Raises MerchantNotFound."""
    merchant = Merchant.objects.filter(pk=merchant_id).first()
    if merchant is None:
        raise MerchantNotFound(id=merchant_id)
    return merchant


def _validated_name(name: str) -> str:
    """The name as it is shown. It is one line, because lists and pages of customers show it."""
    found = plain_text.name(name).strip()
    if not found.isprintable():
        raise ValidationError({"name": _("The name has a character that cannot be printed.")})
    return found


def _validated_scopes(scopes: Iterable[str]) -> list[str]:
    """The scopes without repeats, in the order of `Scope`."""
    given = set(scopes)
    if unknown := given - set(Scope.values):
        known = ", ".join(Scope.values)
        raise ValidationError(
            {"scopes": f"{', '.join(sorted(unknown))} is not a scope. The scopes are {known}."}
        )
    if not given:
        raise ValidationError({"scopes": _("Give at least one scope.")})
    return [scope.value for scope in Scope if scope.value in given]


def validated_networks(field: str, networks: Sequence[str], most: int) -> list[str]:
    """The networks as they are stored. Raises ValidationError."""
    if len(networks) > most:
        raise ValidationError({field: _("At most %(count)s networks.") % {"count": most}})
    try:
        return client_addresses.normalized_networks(networks)
    except ValueError as error:
        raise ValidationError({field: f"{error}."}) from None


def _record(event: SecurityEvent, key: ApiKey, changes: Sequence[str] = ()) -> None:
    security_log.record_on_commit(
        event, subject=f"key:{key.public_id}", merchant_id=key.merchant_id, changes=changes
    )


def _lock_key(key_id: str) -> ApiKey:
    """Lock a key by its id or its public id."""
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
