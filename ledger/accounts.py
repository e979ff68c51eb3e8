"""Codes of the ledger's accounts.

A merchant has three accounts, and others for unconfirmed and unsettled money. Banks and acquirers are
external: their balance falls when money comes in and rises when it leaves. What they keep of it are fees and
the VAT of these; such a balance falls when it is settled. Suspense holds money without an owner. Write-offs
are the operator's losses, zero or less. Money of the sandbox bank has its own suspense and write-offs.
"""

from collections.abc import Iterable
from functools import partial

from ledger.models import MERCHANT_ACCOUNT_TYPES, OPENED_TOGETHER, AccountType

SUSPENSE = "suspense"
SANDBOX = "sandbox"  # the name of the sandbox bank and of its acquirer
SANDBOX_SUSPENSE = f"{SUSPENSE}:{SANDBOX}"
WRITE_OFFS = "write_offs"
SANDBOX_WRITE_OFFS = f"{WRITE_OFFS}:{SANDBOX}"
# A transaction locks accounts by type in this order, and then by id (`tests/lock_order.py`: all tables). The
# lock of `available` stands for all accounts of its merchant: it is needed before any of them changes.
LOCK_ORDER = (
    AccountType.SUSPENSE,
    AccountType.AVAILABLE,
    *MERCHANT_ACCOUNT_TYPES[1:],
    AccountType.WRITE_OFFS,
    AccountType.BANK,
    AccountType.ACQUIRER,
    AccountType.FEES,
    AccountType.FEE_VAT,
)


def _code(type: AccountType, owner: str) -> str:
    return f"{type}:{owner}"


# The codes by the id of the merchant.
available = partial(_code, AccountType.AVAILABLE)
reserved = partial(_code, AccountType.RESERVED)
debt = partial(_code, AccountType.DEBT)
unconfirmed = partial(_code, AccountType.UNCONFIRMED)
unsettled = partial(_code, AccountType.UNSETTLED)
# The codes by the name of the bank or acquirer.
bank, acquirer = partial(_code, AccountType.BANK), partial(_code, AccountType.ACQUIRER)
fees, fee_vat = partial(_code, AccountType.FEES), partial(_code, AccountType.FEE_VAT)


def suspense_for(account: str) -> str:
    """Return where money from `account`, such as `bank:scb`, waits for staff."""
    return SANDBOX_SUSPENSE if account.partition(":")[2] == SANDBOX else SUSPENSE


def write_offs_for(account: str) -> str:
    """Return where losses at `account`, such as `bank:scb`, are booked."""
    return SANDBOX_WRITE_OFFS if account.partition(":")[2] == SANDBOX else WRITE_OFFS


def of_merchant(merchant_id: str) -> list[str]:
    return [_code(account_type, merchant_id) for account_type in MERCHANT_ACCOUNT_TYPES]


def type_of(code: str) -> AccountType:
    return AccountType(code.partition(":")[0])


def merchant_id_of(code: str) -> str | None:
    return code.partition(":")[2] if type_of(code) in MERCHANT_ACCOUNT_TYPES else None


def lock_account_of(code: str) -> str:
    """Return the account whose row lock is needed before `code` changes."""
    owner = merchant_id_of(code)
    return code if owner is None else available(owner)


def in_lock_order(codes: Iterable[str]) -> list[str]:
    return sorted(set(codes), key=lambda code: (LOCK_ORDER.index(type_of(code)), code))


def accounts_to_open(codes: Iterable[str]) -> list[str]:
    """Return the accounts that must exist before money moves between `codes`."""
    opened = set(codes)
    for code in codes:
        if owner := merchant_id_of(code):
            opened.update(_code(account_type, owner) for account_type in OPENED_TOGETHER)
    return sorted(opened)
