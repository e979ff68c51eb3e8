"""Adapters to banks, and the one place that knows which of them this deployment has."""

from django.conf import settings

from banks.base import BadSignature, Bank, Kind, Notice, UnknownBank, Unreadable
from banks.sandbox import SandboxBank

__all__ = ["BadSignature", "Bank", "Kind", "Notice", "UnknownBank", "Unreadable", "get"]


def get(name: str) -> Bank:
    """The adapter of bank `name`. Raises UnknownBank, also for a bank that is not configured here."""
    if name == "sandbox" and settings.SANDBOX_BANK_SECRET:
        return SandboxBank(settings.SANDBOX_BANK_SECRET)
    raise UnknownBank(name=name)
