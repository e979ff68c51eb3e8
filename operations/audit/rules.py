"""The rules of the audit: two queries each, in the files of `sql/`.

`-- rule:` begins a rule, with what is expected; after `-- found` is what there is. `-- define` names a part,
which the rules after it use in braces. What Python declares has a name in `WORDS`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import failures
from core.database.triggers import sql_list
from counts.counting import CLOSED
from counts.lists import CountedList
from ledger.balance_transactions import BALANCE_TRANSACTIONS, SIGNS
from links.models import LINKS
from payments.match_results import HELD_RESULTS, PAYMENT_RESULTS, MatchResult
from payments.models import CLOCK_SKEW, PAYMENTS
from refunds.models import REFUNDS
from transactions.models import TRANSACTIONS
from webhooks.filters import DELIVERIES, EVENTS
from withdrawals.models import WITHDRAWALS

FILES = ("ledger", "payment", "reconciliation", "money_out", "approval")
BLOCK = re.compile(r"^-- (?:rule: (.+)|define (\w+).*)\n", re.MULTILINE)
COUNTED_LISTS: list[CountedList[Any]] = [
    TRANSACTIONS, PAYMENTS, EVENTS, DELIVERIES, REFUNDS, WITHDRAWALS, BALANCE_TRANSACTIONS, LINKS,
]  # fmt: skip
# A payment succeeded by this bank transaction.
CREDITED = """(
    bank_transaction.match_result = 'applied' OR bank_transaction.resolution_state IN ('accepted', 'attached')
)"""
WORDS = {
    "CREDITED": CREDITED,
    "HELD_RESULTS": sql_list(HELD_RESULTS),
    "RESULTS_OF_CODES": sql_list([MatchResult.APPLIED, MatchResult.DECLINED, *PAYMENT_RESULTS]),
    "CLOCK_SKEW": f"interval '{CLOCK_SKEW.seconds} seconds'",
    "REJECTED_BY_STAFF": failures.REJECTED_BY_STAFF,
    "BANK_UNREACHABLE": failures.BANK_UNREACHABLE,
    "SIGNS_OF_TYPES": ", ".join(
        f"('{type}', {sign.available}, {sign.reserved}, {sign.unconfirmed}, {sign.unsettled})"
        for type, sign in SIGNS.items()
    ),
    "CLOSED": CLOSED,
    "OPEN_ROWS": " UNION ALL ".join(
        f"""SELECT '{counted.name}' AS list, id, {counted.owner_column} AS owner_id,
                counts_period(created_at) AS period
            FROM {counted.table} WHERE created_at >= {CLOSED} AND {counted.owner_column} IS NOT NULL"""  # noqa: S608
        for counted in COUNTED_LISTS
    ),
    "COUNTED_ROWS": " UNION ALL ".join(
        f"""SELECT '{counted.name}' AS list, {counted.owner_column} AS owner_id, {counted.kind_sql} AS kind,
                date_trunc('minute', created_at, 'UTC') AS at, {counted.amount_sql} AS amount
            FROM {counted.table} WHERE created_at < {CLOSED} AND {counted.owner_column} IS NOT NULL"""  # noqa: S608
        for counted in COUNTED_LISTS
    ),
}


@dataclass(frozen=True, slots=True)
class AuditRule:
    """Two queries of (id, text): what is expected, and what is found. A row in only one is a difference.

    The operator reads the texts, so they contain ids, amounts and states, but no personal data.
    """

    name: str
    expected: str
    found: str

    @property
    def sql(self) -> str:
        """The query of the differences: id, expected text, found text."""
        return f"""
            WITH expected (id, value) AS ({self.expected}), found (id, value) AS ({self.found})
            SELECT coalesce(expected.id, found.id), coalesce(expected.value, 'nothing'),
                coalesce(found.value, 'nothing')
            FROM expected FULL JOIN found ON found.id = expected.id
            WHERE found.value IS DISTINCT FROM expected.value
        """  # noqa: S608


def read(*files: str) -> list[AuditRule]:
    rules, words = [], dict(WORDS)
    for file in ("shared", *files):
        _, *parts = BLOCK.split((Path(__file__).parent / "sql" / f"{file}.sql").read_text())
        for rule, word, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            sql = text.format_map(words).strip()
            if rule:
                rules.append(AuditRule(rule, *sql.split("-- found\n")))
            else:
                words[word] = sql
    return rules
