"""Adapters to banks, and the one place that knows which of them this deployment has."""

from django.conf import settings

from banks.base import (
    BadSignature,
    Bank,
    Fate,
    Kind,
    Notice,
    Order,
    OrderNotice,
    Purpose,
    Sender,
    UnknownBank,
    Unreadable,
    Word,
)
from banks.sandbox import SandboxBank
from banks.sandbox_orders import SandboxSender

__all__ = [
    "BadSignature",
    "Bank",
    "Fate",
    "Kind",
    "Notice",
    "Order",
    "OrderNotice",
    "Purpose",
    "Sender",
    "UnknownBank",
    "Unreadable",
    "Word",
    "get",
    "sender",
]


def get(name: str) -> Bank:
    """The adapter of bank `name`. Raises UnknownBank, also for a bank that is not configured here."""
    if name == "sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxBank(settings.SANDBOX_BANK_SECRET)
    raise UnknownBank(name=name)


def sender(route: str) -> Sender:
    """Who sends money out by `route`, such as "bank:sandbox". Raises UnknownBank like `get`."""
    if route == "bank:sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxSender(settings.SANDBOX_BANK_SECRET, settings.BASE_URL)
    raise UnknownBank(name=route)
