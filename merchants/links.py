"""The link between a live merchant and its bank: connect, find by the door it knocks at, open.

The door is a path with a secret in it, of which only the SHA-256 is kept. Credentials are sealed.
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
from core import addresses, ids, vault
from merchants.errors import CallerNotAllowed, MerchantNotFound
from merchants.models import BankLink, Merchant, Mode

PREFIX, SECRET_LENGTH = "door_", 43  # 256 random bits
_DOOR = re.compile(f"{PREFIX}[0-9A-Za-z]{{{SECRET_LENGTH}}}", re.ASCII)
MOST_CALLERS = 50
KEEP_BANK = "keeps its bank and its biller id"
"""How the trigger on merchants says no: it looks into payments, of which this package knows nothing."""
KEPT = "The merchant has made codes, so it keeps its bank and biller id: open another merchant."


@dataclass(frozen=True, slots=True)
class Terms:
    """What a merchant and its bank agreed on. callers: networks in CIDR; none means any.

    credentials: by name, as the adapter's `needs` tell.
    """

    bank: str
    biller_id: str
    reference2: str = ""
    reference3: str = ""
    credentials: Mapping[str, object] = field(default_factory=dict, repr=False)
    callers: Sequence[str] = ()


def connect(
    *, merchant_id: str, terms: Terms, now: datetime, renew_door: bool = False
) -> tuple[BankLink, str | None]:
    """Connect a live merchant to its bank, or renew what is known. One commit for merchant and link.

    The second value is the door's secret, shown once: None where the old door stays, which it does for the
    same bank unless `renew_door`. A merchant that has made codes keeps its bank and biller id. Raises
    MerchantNotFound, and ValidationError by the field at fault.
    """
    credentials, callers = _judged(terms)
    with transaction.atomic():
        merchant = _locked(merchant_id)
        _assign(merchant, terms)
        link = BankLink.objects.filter(merchant=merchant).first() or BankLink(
            merchant=merchant, created_at=now
        )
        keeps_door = link.bank == terms.bank and not renew_door
        secret = None if keeps_door else PREFIX + ids.random_text(SECRET_LENGTH)
        if secret is not None:
            link.door_digest = _digest(secret)
        link.bank, link.callers, link.updated_at = terms.bank, callers, now
        link.credentials_sealed = vault.seal(json.dumps(credentials), context=merchant.id)
        link.save()
    return link, secret


def by_door(bank: str, secret: str) -> BankLink:
    """The link whose bank knows this door. Raises banks.UnknownBank, alike for all that is wrong."""
    found = None
    if _DOOR.fullmatch(secret):
        links = BankLink.objects.select_related("merchant")
        found = links.filter(bank=bank, door_digest=_digest(secret)).first()
    if found is None:
        raise banks.UnknownBank(name=bank)
    return found


def admit(link: BankLink, address: str) -> None:
    """Whether a caller from `address` may knock. Raises CallerNotAllowed, also for what is no address."""
    if link.callers and not addresses.is_among(address, link.callers):
        raise CallerNotAllowed()


def of(merchant_id: str) -> banks.Link | None:
    """What the adapter needs to ask the merchant's bank; None for one that is not connected."""
    link = BankLink.objects.select_related("merchant").filter(pk=merchant_id).first()
    return None if link is None else opened(link)


def opened(link: BankLink) -> banks.Link:
    """With the credentials in the clear. Raises core.crypto.CannotOpen."""
    credentials = json.loads(vault.open_sealed(link.credentials_sealed, context=link.merchant_id))
    return banks.Link(link.bank, link.merchant.biller_id, credentials)


def shown(link: BankLink) -> dict[str, str]:
    """The credentials for the eyes of staff: of secrets only that they are set."""
    told = opened(link).credentials
    return {
        need.name: "set" if need.is_secret else told[need.name].split("\n")[0]
        for need in banks.LIVE[link.bank].needs
        if need.name in told
    }


def _judged(terms: Terms) -> tuple[dict[str, str], list[str]]:
    """Credentials and networks as they are kept."""
    if terms.bank not in banks.LIVE:
        raise ValidationError({"bank": f"There is no such bank; known are {', '.join(sorted(banks.LIVE))}."})
    adapter = banks.LIVE[terms.bank]
    if not re.fullmatch("[0-9]{15}", terms.biller_id):
        raise ValidationError({"biller_id": "The bank gives 15 digits."})
    for name, value in (("reference2", terms.reference2), ("reference3", terms.reference3)):
        if not re.fullmatch("[A-Z0-9]{0,20}", value):
            raise ValidationError({name: "Up to 20 capital letters and digits."})
    if adapter.reference3_help and not terms.reference3:
        raise ValidationError({"reference3": adapter.reference3_help})
    try:
        return banks.met(adapter.needs, terms.credentials), _networks(terms.callers)
    except banks.Unmet as error:
        raise ValidationError({"credentials": str(error)}) from None


def _networks(callers: Sequence[str]) -> list[str]:
    if len(callers) > MOST_CALLERS:
        raise ValidationError({"callers": f"At most {MOST_CALLERS} networks."})
    try:
        return addresses.normalized_networks(callers)
    except ValueError as error:
        raise ValidationError({"callers": f"{error}."}) from None


def _locked(merchant_id: str) -> Merchant:
    merchant = Merchant.objects.select_for_update(no_key=True).filter(pk=merchant_id).first()
    if merchant is None:
        raise MerchantNotFound(id=merchant_id)
    if merchant.mode != Mode.LIVE:
        raise ValidationError({"merchant": "Test merchants are served by the sandbox bank."})
    return merchant


def _assign(merchant: Merchant, terms: Terms) -> None:
    """What the merchant's codes carry from now on."""
    others = Merchant.objects.filter(bank=terms.bank, biller_id=terms.biller_id).exclude(pk=merchant.pk)
    if others.exists():
        raise ValidationError({"biller_id": "Another merchant has this biller id at this bank."})
    field = "bank" if merchant.bank != terms.bank else "biller_id"
    merchant.bank, merchant.biller_id = terms.bank, terms.biller_id
    merchant.reference2, merchant.reference3 = terms.reference2, terms.reference3
    try:
        with transaction.atomic():
            merchant.save(update_fields=["bank", "biller_id", "reference2", "reference3"])
    except IntegrityError as error:
        if KEEP_BANK not in str(error):
            raise
        raise ValidationError({field: KEPT}) from None


def _digest(secret: str) -> bytes:
    """256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()
