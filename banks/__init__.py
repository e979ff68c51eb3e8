"""Adapters to banks, and the one place that knows which of them this deployment has."""

from django.conf import settings

from banks.acquirers import Acquirer, Charge, Said
from banks.base import (
    BadSignature,
    Bank,
    Fate,
    Found,
    Kind,
    KnowsSlips,
    Link,
    NotAnswered,
    Notice,
    Order,
    OrderNotice,
    Purpose,
    Question,
    Sender,
    Transferred,
    UnknownBank,
    Unreadable,
    Word,
)
from banks.bbl import Bbl
from banks.bbl_void import BblVoid
from banks.needs import Need, Unmet, met
from banks.omise import Omise
from banks.sandbox import SandboxBank
from banks.sandbox_cards import SandboxAcquirer
from banks.sandbox_orders import SandboxSender
from banks.scb import Scb

__all__ = [
    "LIVE",
    "Acquirer",
    "BadSignature",
    "Bank",
    "Charge",
    "Fate",
    "Found",
    "Kind",
    "KnowsSlips",
    "Link",
    "Need",
    "NotAnswered",
    "Notice",
    "Order",
    "OrderNotice",
    "Purpose",
    "Question",
    "Said",
    "Sender",
    "Transferred",
    "UnknownBank",
    "Unmet",
    "Unreadable",
    "Word",
    "acquirer",
    "asked",
    "code_of",
    "get",
    "knows_slips",
    "met",
    "sender",
    "voids",
]

LIVE: dict[str, type[Scb] | type[Bbl]] = {"scb": Scb, "bbl": Bbl}
"""The banks that serve live merchants: each says what it needs to know of one, and how it proves itself."""
_SENDERS = {"bank:bbl": BblVoid}


def get(name: str, link: Link | None = None) -> Bank:
    """The adapter of bank `name`, for the merchant of `link`; the sandbox bank knows all of its merchants.

    Raises UnknownBank, also for a bank that is not configured here.
    """
    if name == "sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxBank(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    if name in LIVE and link is not None and link.bank == name:
        return LIVE[name](link)
    raise UnknownBank(name=name)


def asked() -> dict[str, type[Bank]]:
    """The banks that can be asked whether a code was paid."""
    return {name: bank for name, bank in _known().items() if bank.calls_per_second > 0}


def knows_slips(name: str) -> bool:
    """Whether bank `name` can be asked about a payer's slip."""
    known = _known()
    return name in known and issubclass(known[name], KnowsSlips)


def code_of(name: str) -> str:
    """The three digits by which statements name bank `name`; empty for one that is not configured here."""
    known = _known()
    return known[name].code if name in known else ""


def _known() -> dict[str, type[Bank]]:
    known: dict[str, type[Bank]] = dict(LIVE)
    if settings.SANDBOX_BANK_SECRET:
        known["sandbox"] = SandboxBank
    return known


def acquirer(name: str) -> Acquirer:
    """Who charges cards. Raises UnknownBank like `get`."""
    if name == "sandbox" and settings.SANDBOX_ACQUIRER_URL and settings.SANDBOX_BANK_SECRET:
        return SandboxAcquirer(settings.SANDBOX_BANK_SECRET, settings.SANDBOX_ACQUIRER_URL)
    if name == "omise" and settings.OMISE_SECRET_KEY:
        return Omise(settings.OMISE_SECRET_KEY, settings.OMISE_API_URL)
    raise UnknownBank(name=name)


def voids(route: str) -> bool:
    """Whether money leaves by `route` only as a payment taken back: `Order.charge_id` says which."""
    return route in _SENDERS


def sender(route: str, link: Link | None = None) -> Sender:
    """Who sends money out by `route`, such as "bank:sandbox", for the merchant of `link`.

    Raises UnknownBank like `get`.
    """
    if route == "bank:sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxSender(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    kind, _, name = route.partition(":")
    if route in _SENDERS and link is not None and link.bank == name:
        return _SENDERS[route](link)
    if kind == "acquirer":
        return acquirer(name)
    raise UnknownBank(name=route)
