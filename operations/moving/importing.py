"""Bring the rows of a file into this database: all of them in one transaction, or none.

The triggers of these tables refuse history, so the owner of the tables switches them off, and nobody else
can write meanwhile. Constraints and foreign keys stay on, and the audit of all decides at the end.
Why: docs/decisions/107-moving-a-merchant.md.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from django.apps import apps
from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import Max, Model

from audit_trail import chain
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import vault
from core.database import rows
from ledger import queries as ledger
from ledger.models import Account, Entry
from merchants.models import Merchant
from operations.audit import findings, runner
from operations.audit.daily_close import signing
from operations.audit.month_close import closing
from operations.models import DailyClose, ErasureCursor
from operations.moving import exporting, file, tables
from operations.moving.file import Unusable
from reconciliation.models import ScanCursor

# They write what no row of the file has, or refuse what a foreign key or a unique index would.
KEPT_TRIGGERS = (
    *("count_inserted", "audit_trail_wait_for_link"),
    *("merchants_check_billers", "merchants_check_exists", "reconciliation_check_reported"),
)
FIND_TRIGGERS = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgname = ANY(%s)"
NOT_OWN = "The file has rows of other merchants or tables."
KNOWN_MONEY = "Or unknown money that came to its biller id is in this database already."
MAX_FINDINGS = 5
ADD_TO_ACCOUNTS = """
UPDATE ledger_account AS account SET rolled_up_balance = rolled_up_balance + moved.amount,
    entries_total = entries_total + moved.amount
FROM (SELECT account_id, sum(amount) AS amount FROM ledger_entry WHERE id >= %s GROUP BY account_id) AS moved
WHERE account.id = moved.account_id
"""
# The lines of a statement that are of other merchants stay where they were.
COUNT_LINES = """
UPDATE reconciliation_statement AS statement SET duplicate_count = 0, stored_count = (
    SELECT count(*) FROM reconciliation_statementline WHERE statement_id = statement.id
) WHERE id = ANY(%s)
"""


class Importer:
    """One import. Its numbers begin after those of this database."""

    def __init__(self) -> None:
        self._numbers: dict[type[Model], tuple[int, int]] = {}
        self._counts = dict.fromkeys(tables.MOVES, 0)
        self._merchant_id = ""
        self._statements: list[str] = []

    @transaction.atomic
    def run(self, path: Path, key: str) -> tuple[str, str]:
        """Import the file; return the id of the merchant and who signed it. Raises Unusable, OSError."""
        for name, value in runner.SESSION_SETTINGS.items():
            rows.run(f"SET LOCAL {name} = '{value}'", [])
        with path.open("rb") as opened:
            chunks = file.read(opened, key)
            self._merchant_id = merchant_id = _check_head(next(chunks, {}))
            self._switch_triggers("DISABLE")
            try:
                end = self._load(chunks, [*settings.FIELD_ENCRYPTION_KEYS, key])
                self._add_to_accounts()
                rows.run("SET CONSTRAINTS ALL IMMEDIATE", [])
            except (IntegrityError, DataError) as refused:
                reason = str(refused).partition("\n")[0]
                raise Unusable(f"This database refuses the rows: {reason}.") from None
        self._switch_triggers("ENABLE")
        signer = self._check_end(end, merchant_id)
        first, _ = self._numbers[AuditRecord]
        newest = AuditRecord.objects.aggregate(newest=Max("pk"))["newest"]
        details = {"sha256": exporting.digest(path), "first_record": first, "next_record": newest + 1}
        exporting.stay(merchant_id, Act.MERCHANT_IMPORTED, details)
        for cursor in (ScanCursor, ErasureCursor):  # their jobs begin again, and find the older rows
            cursor.objects.all().delete()
        _check_books()
        return merchant_id, signer

    def _switch_triggers(self, word: str) -> None:
        models: list[type[Model]] = [*tables.models(), Account]
        names = [model._meta.db_table for model in models]
        if word == "DISABLE":
            rows.run(f"LOCK TABLE {', '.join(names)} IN SHARE ROW EXCLUSIVE MODE", [])
        for name in names:
            rows.run(f"ALTER TABLE {name} {word} TRIGGER USER", [])
        for table, trigger in rows.run(FIND_TRIGGERS, [list(KEPT_TRIGGERS)]).fetchall():
            rows.run(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}", [])

    def _load(self, chunks: Iterator[Any], keys: list[str]) -> dict[str, Any]:
        """Copy the rows, and return the last chunk."""
        for chunk in chunks:
            if "manifest" in chunk:
                return dict(chunk)
            if chunk["table"] not in self._counts:
                raise Unusable(NOT_OWN)
            self._counts[chunk["table"]] += len(chunk["rows"])
            self._copy(apps.get_model(chunk["table"]), chunk["rows"], keys)
        raise Unusable("The end of the file is missing.")

    def _copy(self, model: type[Model], values: list[list[Any]], keys: list[str]) -> None:
        columns = tables.columns(model)
        names, own = [each.column for each in columns], {self._merchant_id, None, ""}
        for place, column in enumerate(columns):
            if numbered := tables.numbered_by(column):
                shift = self._shift(numbered, int(values[0][place]))
                for row in values:
                    row[place] = None if row[place] is None else int(row[place]) + shift
            if column.column == "merchant_id" and {row[place] for row in values} - own:
                raise Unusable(NOT_OWN)
            if column.column.endswith("_sealed"):
                fingerprint = column.column.replace("_sealed", "_fingerprint")
                for row in values:
                    row[place] = exporting.resealed(row[place], keys)
                    if fingerprint in names:
                        row[names.index(fingerprint)] = vault.fingerprint_of(row[place])
        if model._meta.label_lower == "reconciliation.statement":
            self._statements += [row[names.index("id")] for row in values]
        rows.copy_values(model, names, values)

    def _shift(self, model: type[Model], first: int) -> int:
        """What to add to the numbers of a table. The first row of the file has its lowest."""
        if model not in self._numbers:
            table = model._meta.db_table
            sql = f"SELECT nextval(pg_get_serial_sequence('{table}', 'id'))"
            (free,) = rows.run(sql, []).fetchone()
            self._numbers[model] = free, free - first
        return self._numbers[model][1]

    def _add_to_accounts(self) -> None:
        """What triggers would have done. All entries are rolled up at once."""
        for model in self._numbers:
            table = model._meta.db_table
            rows.run(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}", [])  # noqa: S608
        rows.run(COUNT_LINES, [self._statements])
        if Entry not in self._numbers:
            return
        first, _ = self._numbers[Entry]
        codes = Entry.objects.filter(pk__gte=first).values_list("account", flat=True)
        ledger.open_accounts(list(codes.distinct()))
        rows.run(ADD_TO_ACCOUNTS, [first])
        if closed := DailyClose.objects.order_by("-number").first() or closing.newest():
            raise Unusable(f"This instance has a close ({closed}), and closed days get no entries.")

    def _check_end(self, end: dict[str, Any], merchant_id: str) -> str:
        """Compare with what the export wrote. Returns the fingerprint of the key that signed it."""
        manifest = orjson.loads(end["manifest"])
        if end["signed"] and not signing.is_valid(end["manifest"], *end["signed"]):
            raise Unusable("The signature of the file is not that of its content.")
        rows_of = {found.model._meta.label_lower: found.count() for found in exporting.walk(merchant_id)}
        if rows_of != self._counts:  # whoever wrote the file, each row belongs to the merchant
            raise Unusable(f"{NOT_OWN} {KNOWN_MONEY}")
        if {"merchant_id": merchant_id, "rows": rows_of, **exporting.books(merchant_id)} != manifest:
            raise Unusable("The rows, balances or the feed are not those that the file names.")
        return signing.fingerprint(end["signed"][1]) if end["signed"] else ""


def _check_head(head: dict[str, Any]) -> str:
    merchant_id = str(head.get("merchant_id"))
    if head.get("tables") != tables.schema():
        raise Unusable("Another version wrote the file: both instances must have the same version.")
    if Merchant.objects.filter(pk=merchant_id).exists():
        raise Unusable(f"{merchant_id} is in this database already.")
    return merchant_id


def _check_books() -> None:
    """Audit everything, with the records in the chain. Raises Unusable with the first findings."""
    rows.run("SELECT pg_advisory_xact_lock(%s)", [chain.CHAIN_LOCK_ID])
    chain.chain_waiting()
    found = list(findings.find(chain.Verification()))
    if found:
        listed = "\n".join(found[:MAX_FINDINGS])
        raise Unusable(f"The audit finds differences, so nothing is imported: {len(found)}.\n{listed}")
