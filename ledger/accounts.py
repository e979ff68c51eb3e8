"""Accounts of the ledger by code: where money can be.

A merchant has three, and a fourth for money that nobody has confirmed. Banks and acquirers are the world
outside: they go down when money comes in, up when it leaves. Suspense holds what arrived and is nobody's yet,
apart for the sandbox bank, whose money is not real;
write-offs, below zero, are the operator's losses.
"""

from collections.abc import Iterable

from ledger.models import MERCHANT_ACCOUNT_TYPES, OPENED_TOGETHER, AccountType

SUSPENSE = "suspense"
SANDBOX = "sandbox"  # the name of the sandbox bank and of its acquirer
SANDBOX_SUSPENSE = f"{SUSPENSE}:{SANDBOX}"
WRITE_OFFS = "write_offs"
# The order in which a transaction locks accounts, by kind and then by id. The lock of `available` is the lock
# of all accounts of its merchant: nobody changes another one of them without it.
LOCK_ORDER = (
    AccountType.SUSPENSE,
    AccountType.AVAILABLE,
    *MERCHANT_ACCOUNT_TYPES[1:],
    AccountType.WRITE_OFFS,
    AccountType.BANK,
    AccountType.ACQUIRER,
)


def available(merchant_id: str) -> str:
    return f"{AccountType.AVAILABLE}:{merchant_id}"


def reserved(merchant_id: str) -> str:
    return f"{AccountType.RESERVED}:{merchant_id}"


def debt(merchant_id: str) -> str:
    return f"{AccountType.DEBT}:{merchant_id}"


def unconfirmed(merchant_id: str) -> str:
    """Money that only an uploaded statement reports: no refund and no withdrawal can take it."""
    return f"{AccountType.UNCONFIRMED}:{merchant_id}"


def credit_account(merchant_id: str, *, is_confirmed: bool) -> str:
    """The account that new money of a merchant goes to."""
    return available(merchant_id) if is_confirmed else unconfirmed(merchant_id)


def bank(name: str) -> str:
    return f"{AccountType.BANK}:{name}"


def acquirer(name: str) -> str:
    return f"{AccountType.ACQUIRER}:{name}"


def suspense_for(account: str) -> str:
    """Where money from `account`, such as `bank:scb`, waits for staff."""
    return SANDBOX_SUSPENSE if account.partition(":")[2] == SANDBOX else SUSPENSE


def of_merchant(merchant_id: str) -> list[str]:
    """All that a merchant has."""
    return [f"{account_type}:{merchant_id}" for account_type in MERCHANT_ACCOUNT_TYPES]


def type_of(code: str) -> AccountType:
    return AccountType(code.partition(":")[0])


def merchant_id_of(code: str) -> str | None:
    """The merchant's id; None for what belongs to no merchant."""
    return code.partition(":")[2] if type_of(code) in MERCHANT_ACCOUNT_TYPES else None


def lock_account_of(code: str) -> str:
    """The account whose row lock is needed before `code` changes."""
    owner = merchant_id_of(code)
    return code if owner is None else available(owner)


def in_lock_order(codes: Iterable[str]) -> list[str]:
    return sorted(set(codes), key=lambda code: (LOCK_ORDER.index(type_of(code)), code))


def accounts_to_open(codes: Iterable[str]) -> list[str]:
    """The accounts that must be there before money moves between `codes`."""
    opened = set(codes)
    for code in codes:
        if owner := merchant_id_of(code):
            opened.update(f"{account_type}:{owner}" for account_type in OPENED_TOGETHER)
    return sorted(opened)
