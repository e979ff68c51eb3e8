"""One action on many exceptions. Each row is a decision of its own: its own transaction, checks and record.

So the limits of approvals count each row as if staff had acted on it alone.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _

from approvals import services as approvals
from core import ids
from merchants.models import Merchant
from reconciliation.exceptions import actions, resolution_records, summaries
from reconciliation.exceptions.actions import Action
from reconciliation.exceptions.resolution_records import ActionNotAllowed
from reconciliation.models import ReconciliationException

log = logging.getLogger("reconciliation")
# Each row takes some 30 ms, and the person waits for all of them.
MAX_ROWS = 200
# The others need something for each row: a payment, an account, a bank's reference, or a look at the bank.
SLUGS = ("accept", "return-excess", "send-back", "merge", "dismiss", "write-off", "credit")
BULK_ACTIONS = {slug: actions.ACTIONS_BY_SLUG[slug] for slug in SLUGS}


class TooManyRows(Exception):
    """More rows than MAX_ROWS were chosen. Nothing changed."""


class Outcome(StrEnum):
    DONE = "done"
    WAITS = "waits"  # for a second person
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A chosen exception with what the action will do to it, or why it is not possible."""

    id: str
    title: str  # empty for an unknown id
    merchant: Merchant | None
    amount: int | None
    description: str = ""
    refusal: str = ""

    @property
    def choice(self) -> str:
        """The value of the form: the id, and a digest of what staff read about the row."""
        return f"{self.id}:{hashlib.sha256(self.description.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class RowResult:
    """text: what happened to the row, or why nothing did."""

    row: PlannedRow
    outcome: Outcome
    text: str


def plan(action: Action, subject_ids: Sequence[str]) -> list[PlannedRow]:
    """What the action will do to each row, in this order. Raises TooManyRows."""
    chosen = list(dict.fromkeys(subject_ids))
    if len(chosen) > MAX_ROWS:
        raise TooManyRows
    known = [each for each in chosen if ids.looks_right(each, "")]
    found = summaries.by_id(known)
    rows = ReconciliationException.objects.select_related("merchant").in_bulk(known)
    return [_plan_row(action, each, found.get(each), rows.get(each)) for each in chosen]


def _plan_row(
    action: Action,
    subject_id: str,
    summary: summaries.ExceptionSummary | None,
    row: ReconciliationException | None,
) -> PlannedRow:
    if summary is None:
        return PlannedRow(subject_id, "", None, None, refusal=_("There is no such exception."))
    # A row that was resolved meanwhile has left the table of exceptions.
    shown = (_(row.get_reason_display()), row.merchant, row.amount) if row else (summary.title, None, None)
    try:
        return PlannedRow(subject_id, *shown, description=actions.describe(summary, action, {}))
    except ActionNotAllowed as refusal:
        return PlannedRow(subject_id, *shown, refusal=str(refusal))


def run(
    action: Action, choices: Sequence[str], *, note: str, clock: Callable[[], datetime]
) -> list[RowResult]:
    """Do the action to each row that is still as staff saw it. Raises TooManyRows."""
    resolution_records.check_confirmation(action.resolution_type)
    rows = plan(action, [choice.partition(":")[0] for choice in choices])
    confirmed = set(choices)
    return [_run_row(action, row, row.choice in confirmed, note, clock) for row in rows]


def _run_row(
    action: Action, row: PlannedRow, is_as_seen: bool, note: str, clock: Callable[[], datetime]
) -> RowResult:
    if row.refusal:
        return RowResult(row, Outcome.REFUSED, row.refusal)
    if not is_as_seen:
        text = _("It has changed since you saw it. Look at it again.")
        return RowResult(row, Outcome.REFUSED, text)
    try:
        made = action.execute(row.id, note=note, now=clock())
    except ActionNotAllowed as refusal:
        return RowResult(row, Outcome.REFUSED, str(refusal))
    except Exception:  # the rows before it are done, and staff must see which
        log.exception("%s of %s failed", action.slug, row.id)
        return RowResult(row, Outcome.REFUSED, _("A fault prevented it. Look at it before you try again."))
    if approvals.is_waiting(row.id, str(getattr(made, "pk", ""))):
        text = _("It is above the limit: a second person must approve it first.")
        return RowResult(row, Outcome.WAITS, text)
    return RowResult(row, Outcome.DONE, str(action.success_message))
