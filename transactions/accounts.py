"""Accounts of the ledger by code: where money can be.

A merchant has three, and a fourth for money that nobody has confirmed. Banks and acquirers are the world
outside: they go down when money comes in, up when it leaves. Suspense holds what arrived and is nobody's yet,
apart for the sandbox bank, whose money is not real;
losses, below zero, what the operator has lost.
"""

from collections.abc import Iterable

from transactions.ledger_models import OF_MERCHANTS, OPENED_TOGETHER, Kind

SUSPENSE = "suspense"
SANDBOX = "sandbox"  # the name of the sandbox bank and of its acquirer
SANDBOX_SUSPENSE = f"{SUSPENSE}:{SANDBOX}"
LOSSES = "losses"
# The order in which a transaction locks accounts, by kind and then by id. The lock of `available` is the lock
# of all accounts of its merchant: nobody changes another one of them without it.
LOCK_ORDER = (Kind.SUSPENSE, Kind.AVAILABLE, *OF_MERCHANTS[1:], Kind.LOSSES, Kind.BANK, Kind.ACQUIRER)


def available(merchant_id: str) -> str:
    return f"{Kind.AVAILABLE}:{merchant_id}"


def reserved(merchant_id: str) -> str:
    return f"{Kind.RESERVED}:{merchant_id}"


def owed(merchant_id: str) -> str:
    return f"{Kind.OWED}:{merchant_id}"


def unconfirmed(merchant_id: str) -> str:
    """Money that only an uploaded statement reports: no refund and no withdrawal can take it."""
    return f"{Kind.UNCONFIRMED}:{merchant_id}"


def credited(merchant_id: str, *, is_confirmed: bool) -> str:
    """The account that new money of a merchant goes to."""
    return available(merchant_id) if is_confirmed else unconfirmed(merchant_id)


def bank(name: str) -> str:
    return f"{Kind.BANK}:{name}"


def acquirer(name: str) -> str:
    return f"{Kind.ACQUIRER}:{name}"


def suspense_of(outside: str) -> str:
    """Where money from the account `outside`, such as `bank:scb`, waits for staff."""
    return SANDBOX_SUSPENSE if outside.partition(":")[2] == SANDBOX else SUSPENSE


def of(merchant_id: str) -> list[str]:
    """All that a merchant has."""
    return [f"{kind}:{merchant_id}" for kind in OF_MERCHANTS]


def kind_of(code: str) -> Kind:
    return Kind(code.partition(":")[0])


def owner_of(code: str) -> str | None:
    """The merchant's id; None for what belongs to no merchant."""
    return code.partition(":")[2] if kind_of(code) in OF_MERCHANTS else None


def lock_of(code: str) -> str:
    """The account whose row lock is needed before `code` changes."""
    owner = owner_of(code)
    return code if owner is None else available(owner)


def in_lock_order(codes: Iterable[str]) -> list[str]:
    return sorted(set(codes), key=lambda code: (LOCK_ORDER.index(kind_of(code)), code))


def opened_with(codes: Iterable[str]) -> list[str]:
    """The accounts that must be there before money moves between `codes`."""
    opened = set(codes)
    for code in codes:
        if owner := owner_of(code):
            opened.update(f"{kind}:{owner}" for kind in OPENED_TOGETHER)
    return sorted(opened)
