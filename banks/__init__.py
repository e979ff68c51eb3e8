"""Adapters to banks, and the one place that knows which of them this deployment has."""

from django.conf import settings

from banks.acquirers import Acquirer, ChargeRequest, ChargeResult
from banks.base import (
    AdapterConfig,
    Bank,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    InvalidSignature,
    ReportedTransaction,
    ReportedTransfer,
    ResultStatus,
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
from banks.bbl import Bbl
from banks.bbl_void import BblVoidSender
from banks.credentials import CredentialField, InvalidCredential, validate_credentials
from banks.omise import Omise
from banks.sandbox import SandboxBank
from banks.sandbox_cards import SandboxAcquirer
from banks.sandbox_orders import SandboxSender
from banks.scb import Scb

__all__ = [
    "LIVE_BANKS",
    "Acquirer",
    "AdapterConfig",
    "Bank",
    "ChargeRequest",
    "ChargeResult",
    "CredentialField",
    "InquiryFailed",
    "InquiryRequest",
    "InquiryResult",
    "InvalidCredential",
    "InvalidSignature",
    "ReportedTransaction",
    "ReportedTransfer",
    "ResultStatus",
    "SlipLookup",
    "SlipTransfer",
    "TransactionKind",
    "TransferOrder",
    "TransferPurpose",
    "TransferResult",
    "TransferSender",
    "UnknownBank",
    "UnreadableMessage",
    "acquirer",
    "bank_code_of",
    "banks_with_inquiry",
    "get",
    "is_void_only",
    "sender",
    "supports_slip_lookup",
    "validate_credentials",
]

LIVE_BANKS: dict[str, type[Scb] | type[Bbl]] = {"scb": Scb, "bbl": Bbl}
"""The banks that serve live merchants: each says what it needs to know of one, and how it proves itself."""
_SENDERS = {"bank:bbl": BblVoidSender}


def get(name: str, config: AdapterConfig | None = None) -> Bank:
    """The adapter of bank `name`, for the merchant of `config`; the sandbox bank knows all of its merchants.

    Raises UnknownBank, also for a bank that is not configured here.
    """
    if name == "sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxBank(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    if name in LIVE_BANKS and config is not None and config.bank == name:
        return LIVE_BANKS[name](config)
    raise UnknownBank(name=name)


def banks_with_inquiry() -> dict[str, type[Bank]]:
    """The banks that can be asked whether a code was paid."""
    return {name: bank for name, bank in _configured_banks().items() if bank.calls_per_second > 0}


def supports_slip_lookup(name: str) -> bool:
    """Whether bank `name` can be asked about a payer's slip."""
    known = _configured_banks()
    return name in known and issubclass(known[name], SlipLookup)


def bank_code_of(name: str) -> str:
    """The three digits by which statements name bank `name`; empty for one that is not configured here."""
    known = _configured_banks()
    return known[name].code if name in known else ""


def _configured_banks() -> dict[str, type[Bank]]:
    known: dict[str, type[Bank]] = dict(LIVE_BANKS)
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


def is_void_only(route: str) -> bool:
    """Whether money leaves by `route` only as a payment taken back: `TransferOrder.charge_id` says which."""
    return route in _SENDERS


def sender(route: str, config: AdapterConfig | None = None) -> TransferSender:
    """Who sends money out by `route`, such as "bank:sandbox", for the merchant of `config`.

    Raises UnknownBank like `get`.
    """
    if route == "bank:sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxSender(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    kind, _, name = route.partition(":")
    if route in _SENDERS and config is not None and config.bank == name:
        return _SENDERS[route](config)
    if kind == "acquirer":
        return acquirer(name)
    raise UnknownBank(name=route)
