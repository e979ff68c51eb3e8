"""The rule type of the audit, and SQL that several rules share."""

from dataclasses import dataclass

from core.triggers import sql_list
from payments.match_results import HELD_RESULTS


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


# The amount that came in for a payment.
RECEIVED_AMOUNT = "coalesce(payment.amount_received, payment.amount)"


# CREDITED: a payment succeeded by this bank transaction. HELD: its money waits, or waited, for staff.
CREDITED = "(movement.match_result = 'applied' OR movement.resolution_state IN ('accepted', 'attached'))"
HELD = f"movement.kind = 'credit' AND movement.match_result IN {sql_list(HELD_RESULTS)}"


def suspense_account(outside: str) -> str:
    """The suspense account for money from an outside account. outside: an SQL expression."""
    return f"CASE split_part({outside}, ':', 2) WHEN 'sandbox' THEN 'suspense:sandbox' ELSE 'suspense' END"


def journal_lines(where: str) -> str:
    """The query of journal entries: subject, type and account, with the satang."""
    return f"""
        SELECT concat_ws(' ', journal.subject_id, journal.type, entry.account_id), entry.amount::text
        FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
        WHERE {where}
    """  # noqa: S608


def published_events(where: str) -> str:
    """The query of events: subject and type, with their number and merchant."""
    return f"""
        SELECT concat_ws(' ', subject_id, type), concat(count(*), ' to ', merchant_id)
        FROM webhooks_event WHERE {where} GROUP BY subject_id, type, merchant_id
    """  # noqa: S608
