"""What a rule of the books is, and what several of them read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditRule:
    """What must be and what is: two queries of (id, text). A row of the one without its equal in the other is
    a difference.

    The texts are shown to whoever runs the audit: ids, amounts and states, nothing about persons.
    """

    name: str
    expected: str
    found: str

    @property
    def sql(self) -> str:
        """Finds the differences: id, what is expected, what is found."""
        return f"""
            WITH expected (id, said) AS ({self.expected}), found (id, said) AS ({self.found})
            SELECT coalesce(expected.id, found.id), coalesce(expected.said, 'nothing'),
                coalesce(found.said, 'nothing')
            FROM expected FULL JOIN found ON found.id = expected.id
            WHERE found.said IS DISTINCT FROM expected.said
        """  # noqa: S608


# What came in for a payment, where that is not what was asked for.
RECEIVED_AMOUNT = "coalesce(payment.amount_received, payment.amount)"


# A bank transaction by which a payment succeeded, and one of money that waits or waited for a person.
CREDITED = "(movement.match_result = 'applied' OR movement.resolution_state IN ('accepted', 'attached'))"
HELD = (
    "movement.kind = 'credit' AND movement.match_result IN ('unmatched', 'duplicate', "
    "'amount_mismatch', 'late')"
)


def suspense_account(outside: str) -> str:
    """The account in which money waits that came from `account`, an expression of SQL."""
    return f"CASE split_part({outside}, ':', 2) WHEN 'sandbox' THEN 'suspense:sandbox' ELSE 'suspense' END"


def journal_lines(where: str) -> str:
    """The query of the lines of journals: which, and how many satang."""
    return f"""
        SELECT concat_ws(' ', journal.subject_id, journal.type, entry.account_id), entry.amount::text
        FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
        WHERE {where}
    """  # noqa: S608


def published_events(where: str) -> str:
    """The query of events: about what, how many and to whom."""
    return f"""
        SELECT concat_ws(' ', subject_id, type), concat(count(*), ' to ', merchant_id)
        FROM webhooks_event WHERE {where} GROUP BY subject_id, type, merchant_id
    """  # noqa: S608
