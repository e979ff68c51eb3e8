"""Record the row locks of every transaction, and report those that break the declared order.

Two transactions that lock the same rows in different orders can deadlock. So every test checks the order,
also where only one transaction runs. The reasons: docs/decisions/34-lock-order.md.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from django.apps import apps
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.migrations.executor import MigrationExecutor
from django.db.transaction import Atomic

from approvals import services as approvals
from ledger import accounts, queries

# A transaction takes its locks in this order. The tables in brackets guard a table: every transaction that
# locks its rows holds a lock of a guard first. So under a guard the table may be locked at any time.
BANK_TRANSACTION_LOCK = "advisory lock of a bank transaction"
APPROVAL_LIMITS_LOCK = "advisory lock of a merchant's approval limits"
LOCK_ORDER: dict[str, tuple[str, ...]] = {
    "idempotency_idempotencykey": (),
    "testclock_merchantclock": (),
    BANK_TRANSACTION_LOCK: (),
    "settlements_acquirerreading": (),
    "settlements_acquirertransfer": (),
    "payments_payment": (),
    "links_paymentlink": (),
    "payments_cardcharge": ("payments_payment",),
    "qrcodes_qrcode": ("payments_payment",),
    "reconciliation_banktransaction": (),
    "reconciliation_banknotification": (),
    "reconciliation_confirmationinquiry": ("reconciliation_banknotification",),
    "reconciliation_return": ("reconciliation_banktransaction",),
    "reconciliation_excess": ("reconciliation_banktransaction",),
    "refunds_refund": ("payments_payment",),
    "refunds_refundreversal": ("payments_payment",),
    "refunds_claimlink": ("payments_payment",),
    "withdrawals_payoutschedule": (),
    "withdrawals_withdrawal": (),
    "approvals_approval": (
        "reconciliation_banktransaction",
        "reconciliation_return",
        "refunds_refund",
        "withdrawals_withdrawal",
    ),
    "transfers_transfer": ("reconciliation_return", "refunds_refund", "withdrawals_withdrawal"),
    "transactions_transaction": ("payments_payment",),
    APPROVAL_LIMITS_LOCK: (),
    "approvals_payoutpolicy": (),
    "approvals_payoutaccount": (),
    "ledger_account": (),
    "transfers_transfercontradiction": (),
    "payments_paymentexception": ("reconciliation_banktransaction",),
    "reconciliation_reconciliationexception": (
        "payments_payment",
        "reconciliation_banktransaction",
        "reconciliation_banknotification",
        "withdrawals_withdrawal",
    ),
}
LOCK_POSITION = {table: place for place, table in enumerate(LOCK_ORDER)}
# Rows of these apps and models have an order of their own, or are only inserted.
UNORDERED_APPS = {
    "account",
    "mfa",
    "sessions",
    "socialaccount",
    "usersessions",
    "admin",
    "audit_trail",
    "auth",
    "contenttypes",
    "console",
    "operations",
    "sandbox",
}
UNORDERED_MODELS = {
    "merchants.ApiKey",
    "shop.Membership",
    "transfers.DatabaseIdentity",
    "transfers.DatabaseMark",
    "transfers.SafeMode",
    "merchants.BankConnection",
    "merchants.Merchant",
    "merchants.PageSettings",
    "payments.FeeTerms",
    "links.LinkCode",
    "settlements.OpenQuestion",
    "settlements.SettledItem",
    "settlements.Settlement",
    "settlements.UnpaidEntry",
    "reconciliation.Backoff",
    "reconciliation.BankRateLimit",
    "refunds.ClaimTry",
    "reconciliation.Inquiry",
    "reconciliation.InquiryAnswer",
    "reconciliation.NotificationId",
    "reconciliation.Resolution",
    "reconciliation.ScanCursor",
    "reconciliation.Statement",
    "reconciliation.StatementImport",
    "reconciliation.StatementLine",
    "reconciliation.StatementPart",
    "reconciliation.StatementUpload",
    "request_log.RequestRecord",
    "webhooks.Delivery",
    "webhooks.DeliveryAttempt",
    "webhooks.DeliveryLease",
    "webhooks.Endpoint",
    "webhooks.EndpointAction",
    "webhooks.EndpointHealth",
    "webhooks.Event",
    "webhooks.FeedBlock",
    "webhooks.UnnumberedEvent",
    "withdrawals.PayoutNight",
}
# No transaction locks rows of these together with rows of a table in LOCK_ORDER.
SEPARATE_MODELS = {
    "counts.CountClock",
    "counts.CountDelta",
    "counts.ListCount",
    "counts.OpenPeriod",
    "ledger.BalanceTransaction",
    "ledger.Entry",
    "ledger.Journal",
    "ledger.PendingEntry",
    "payments.ChargeAnswer",
    "reconciliation.SlipCheck",
    "transfers.CircuitBreaker",
    "transfers.TransferEvent",
}
MODELS_BY_TABLE = {
    model._meta.db_table: model._meta
    for model in apps.get_models(include_auto_created=True)
    if not model._meta.proxy
}
UNORDERED_TABLES = {
    table
    for table, model in MODELS_BY_TABLE.items()
    if model.app_label in UNORDERED_APPS or model.label in UNORDERED_MODELS
}
# The prefixes of the ids by which a statement names the rows that it locks.
ID_PREFIXES: dict[str, tuple[str, ...]] = {
    "payments_payment": ("pay_",),
    "payments_cardcharge": ("pay_",),
    "reconciliation_banktransaction": ("btx_",),
    "reconciliation_banknotification": ("ntf_",),
    "reconciliation_return": ("rtn_",),
    "reconciliation_excess": ("btx_",),
    "refunds_refund": ("ref_",),
    "withdrawals_withdrawal": ("wd_",),
    "approvals_approval": ("btx_", "rtn_", "ref_", "wd_"),
    "transfers_transfer": ("ref_", "rtn_", "wd_"),
    "transfers_transfercontradiction": ("ctr_",),
    "payments_paymentexception": ("btx_",),
    "reconciliation_reconciliationexception": ("btx_", "ntf_", "ref_", "ctr_"),
    APPROVAL_LIMITS_LOCK: ("outgoing ",),
}
ROLL_UPS = (queries.ROLL_UP_ENTRIES, queries.ROLL_UP_NEWEST)
ACCOUNT_CODE = re.compile(
    r"(available|reserved|debt|unconfirmed|bank|acquirer):.+|(suspense|write_offs)(:sandbox)?"
)
WRITES = re.compile(r'(?<!FOR )(?<!KEY )(?<!DO )\b(?:UPDATE|DELETE FROM)\s+"?(\w+)')
LOCKS = re.compile(
    r'\bFROM\s+"?(\w+)"?.*\bFOR (?:NO KEY )?UPDATE(?: OF "?(\w+)"?)?\s*(SKIP LOCKED|NOWAIT)?', re.DOTALL
)
Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """The tables whose rows a statement locks, and whether it waits for them."""

    tables: tuple[str, ...]
    waits: bool


@dataclass(slots=True)
class Transaction:
    """The locks of one transaction, the newest last, and the number of locks at each savepoint."""

    held: list[Row] = field(default_factory=list)
    savepoints: list[int] = field(default_factory=list)


class LockOrderRecorder:
    """Records the locks of every connection of this process."""

    def __init__(self) -> None:
        self.inversions: list[str] = []
        self._is_migrating = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        enter, leave, migrate = Atomic.__enter__, Atomic.__exit__, MigrationExecutor.migrate

        def entered(block: Atomic) -> None:
            enter(block)
            if not getattr(block, "_from_testcase", False):
                now = _transaction()
                now.savepoints.append(len(now.held))

        def left(block: Atomic, kind: Any, error: Any, trace: Any) -> None:
            if not getattr(block, "_from_testcase", False):
                now = _transaction()
                length = now.savepoints.pop()
                if error is not None or not now.savepoints:
                    del now.held[length:]
            leave(block, kind, error, trace)

        def migrated(*args: Any, **kwargs: Any) -> Any:
            """Migrations may lock in any order: the service does not run meanwhile."""
            self._is_migrating = True
            try:
                return migrate(*args, **kwargs)
            finally:
                self._is_migrating = False

        def watch(connection: Any, **kwargs: Any) -> None:
            if self._execute not in connection.execute_wrappers:
                connection.execute_wrappers.append(self._execute)

        connection_created.connect(watch, weak=False)
        for connection in connections.all(initialized_only=True):
            watch(connection)
        with (
            patch.object(Atomic, "__enter__", entered),
            patch.object(Atomic, "__exit__", left),
            patch.object(MigrationExecutor, "migrate", migrated),
        ):
            yield

    def _execute(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        now = _transaction()
        if now.savepoints and not self._is_migrating and (locked := _read(str(sql))) is not None:
            found = [
                problem for table in locked.tables for problem in _lock(now, table, locked.waits, sql, params)
            ]
            self.inversions += [f"{problem}, in {' '.join(str(sql).split())[:120]}" for problem in found]
        return execute(sql, params, many, context)


def _transaction() -> Transaction:
    """The transaction of this thread's connection."""
    connection = connections["default"]
    now: Transaction = connection.__dict__.setdefault("locks_of_test", Transaction())
    return now


@lru_cache(maxsize=4096)
def _read(sql: str) -> Statement | None:
    if "pg_advisory_xact_lock(name)" in sql or "reconciliation_find_reported(" in sql:
        return Statement((BANK_TRANSACTION_LOCK,), waits=True)
    if "reconciliation_lock_credits(" in sql:
        locked = (BANK_TRANSACTION_LOCK, "payments_payment", "reconciliation_banktransaction")
        return Statement(locked, waits=True)
    if sql == approvals.LOCK_LIMITS:
        return Statement((APPROVAL_LIMITS_LOCK,), waits=True)
    if sql in ROLL_UPS:
        return Statement(("ledger_account",), waits=True)
    if not sql.lstrip().startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
        return None
    tables: list[str] = WRITES.findall(sql)
    waits = bool(tables)
    if locking := LOCKS.search(sql):
        table, of, how = locking.groups()
        named = of if of and of in LOCK_POSITION else "ledger_account" if of == "account" else table
        tables.append(named)
        waits = waits or how is None
    if "ON CONFLICT" in sql and "DO UPDATE" in sql:
        tables += re.findall(r'INSERT INTO\s+"?(\w+)', sql)
        waits = True
    found = tuple(dict.fromkeys(table for table in tables if table not in UNORDERED_TABLES))
    return Statement(found, waits) if found else None


def _lock(now: Transaction, table: str, waits: bool, sql: Any, params: Any) -> Iterator[str]:
    strangers = [held for held, _ in now.held if (held in LOCK_POSITION) != (table in LOCK_POSITION)]
    if strangers:
        yield f"{table} and {strangers[-1]} are locked together, and one has no place in tests/lock_order.py"
    if table not in LOCK_POSITION:
        now.held.append((table, ""))
        return
    if table == "ledger_account":
        yield from _lock_accounts(now, waits, sql, params)
        return
    named = {text for text in _texts(params) if text.startswith(ID_PREFIXES.get(table, ()))}
    rows = {(table, name) for name in named} or {(table, "")}
    # A lock without an id may be that of any row of its table.
    fresh = set() if (table, "") in now.held else rows.difference(now.held)
    if fresh and waits and not any(gate == held for held, _ in now.held for gate in LOCK_ORDER[table]):
        later = [
            held
            for held, _ in now.held
            if LOCK_POSITION.get(held, 0) > LOCK_POSITION[table] and not _is_guarded(now, held)
        ]
        if later:
            yield f"{table} locked after {later[-1]}"
    now.held += sorted(fresh)


def _is_guarded(now: Transaction, table: str) -> bool:
    """Return whether this transaction holds the lock of a row that guards this table."""
    return any(gate == held for held, _ in now.held for gate in LOCK_ORDER.get(table, ()))


def _lock_accounts(now: Transaction, waits: bool, sql: Any, params: Any) -> Iterator[str]:
    """Check a statement of the ledger: it locks the given accounts in their order, then changes them."""
    codes, changed = _accounts_of(sql, params)
    held = [name for table, name in now.held if table == "ledger_account"]
    for code in codes:
        if code in held:
            continue
        if waits and held and accounts.in_lock_order([held[-1], code]) != [held[-1], code]:
            yield f"{code} locked after {held[-1]}"
        held.append(code)
        now.held.append(("ledger_account", code))
    yield from (
        f"{code} changed without {lock}"
        for code in changed
        if (lock := accounts.lock_account_of(code)) not in held
    )


def _accounts_of(sql: Any, params: Any) -> tuple[list[str], list[str]]:
    """The accounts that a statement locks, in its order, and those that it changes."""
    if sql.endswith(queries.POST_JOURNALS):
        locks, changed = params[-3], params[-1]
        return locks, changed
    named = [text for text in _texts(params) if ACCOUNT_CODE.fullmatch(text)]
    return ([], named) if sql in ROLL_UPS else (named, [])


def _texts(params: Any) -> Iterator[str]:
    for value in params.values() if isinstance(params, dict) else params or ():
        if isinstance(value, str):
            yield str(value)
        elif isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
            yield from (str(each) for each in value if isinstance(each, str))
