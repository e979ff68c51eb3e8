"""Adapters to banks and acquirers, and the registry of those that this deployment can use."""

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from banks.base import (
    Acquirer,
    AcquirerTransfer,
    AdapterConfig,
    Bank,
    ChargeRequest,
    ChargeResult,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    InvalidSignature,
    LedgerCopy,
    LedgerEntry,
    LiveSender,
    ReportedTransaction,
    ReportedTransfer,
    ResultStatus,
    SettledItem,
    SlipLookup,
    SlipTransfer,
    TransactionKind,
    TransferOrder,
    TransferPurpose,
    TransferResult,
    TransferSender,
    UnknownBank,
    UnreadableMessage,
)
from banks.bbl import Bbl, BblVoidSender
from banks.credentials import CredentialField, InvalidCredential, validate_credentials
from banks.live_bank import LiveBank
from banks.omise import Omise
from banks.sandbox import SandboxBank, SandboxSender
from banks.sandbox_cards import SandboxAcquirer
from banks.scb import Scb

LIVE_BANKS: dict[str, type[LiveBank]] = {"scb": Scb, "bbl": Bbl}  # the banks of live merchants
LIVE_SENDERS: dict[str, type[LiveSender]] = {"bank:bbl": BblVoidSender}
"""How live banks send money, by route. Others only receive."""


def get(name: str, config: AdapterConfig | None = None) -> Bank:
    """The adapter to bank `name` for the merchant of `config`. The sandbox bank needs no `config`.

    Raises UnknownBank, also for a bank that is not configured.
    """
    if name == "sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxBank(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    if name in LIVE_BANKS and config is not None and config.bank == name:
        return LIVE_BANKS[name](config)
    raise UnknownBank(name=name)


def configured_banks() -> dict[str, type[Bank]]:
    """The banks that this deployment can call, by name."""
    known: dict[str, type[Bank]] = dict(LIVE_BANKS)
    if settings.SANDBOX_BANK_SECRET:
        known["sandbox"] = SandboxBank
    return known


def title(name: str) -> str:
    """What people call the bank or acquirer `name`, as it stands inside a sentence."""
    if name == "sandbox":
        return _("the sandbox bank")
    known: dict[str, type[Any]] = {**LIVE_BANKS, "omise": Omise}
    return _(known[name].title) if name in known else name


def supports_slip_lookup(name: str) -> bool:
    """Whether bank `name` answers questions about a payer's slip."""
    known = configured_banks()
    return name in known and issubclass(known[name], SlipLookup)


def bank_code_of(name: str) -> str:
    """The three digits of bank `name` in statements; empty if it is not configured."""
    known = configured_banks()
    return known[name].code if name in known else ""


def acquirer(name: str) -> Acquirer:
    """The adapter to the acquirer `name`. Raises UnknownBank like `get`."""
    if name == "sandbox" and settings.SANDBOX_ACQUIRER_URL and settings.SANDBOX_BANK_SECRET:
        return SandboxAcquirer(settings.SANDBOX_BANK_SECRET, settings.SANDBOX_ACQUIRER_URL)
    if name == "omise" and settings.OMISE_SECRET_KEY:
        return Omise(settings.OMISE_SECRET_KEY, settings.OMISE_API_URL)
    raise UnknownBank(name=name)


def is_void_only(route: str) -> bool:
    """Whether `route` sends money only by voiding the payment in `TransferOrder.charge_id`."""
    return route in LIVE_SENDERS and LIVE_SENDERS[route].IS_VOID_ONLY


def sender(route: str, config: AdapterConfig | None = None) -> TransferSender:
    """The sender of `route`, such as "bank:sandbox", for `config`. Raises UnknownBank like `get`."""
    if route == "bank:sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxSender(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    kind, _, name = route.partition(":")
    if route in LIVE_SENDERS and config is not None and config.bank == name:
        return LIVE_SENDERS[route](config)
    if kind == "acquirer":
        return acquirer(name)
    raise UnknownBank(name=route)
