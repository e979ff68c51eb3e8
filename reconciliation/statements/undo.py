"""Undo an import that nobody has acted on: what it alone brought goes, and a later file can bring it again.

Its lines are deleted. Its unknown money leaves suspense, and the bank transaction stays as `undone`: a later
report of the same money makes another one. `sql/undo.sql` has the rules; what it says goes before this.
"""

from datetime import datetime

from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.acts import Act, ActRefused
from audit_trail.recording import recorded
from core import money, request_context
from core.database import rows
from ledger import accounts, services as ledger
from reconciliation.matching import deduplication
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ExceptionReason,
    LineResult,
    ReconciliationException,
    Resolution,
    ResolutionState,
    ResolutionType,
    Statement,
    listing,
)

MAX_UNDONE = 1_000  # transactions and messages of one commit; each takes a lock and some milliseconds
LOCK_LINES = "SELECT pg_advisory_xact_lock(hashtextextended('statement lines ' || %s, 0))"
WHY_NOT = {
    "closed": gettext_lazy("The day or month of this import is closed."),
    "known": gettext_lazy("Another import knew lines of earlier ones already: undo it first."),
    "moved": gettext_lazy("This import brought money of a merchant that has moved to another instance."),
    "not_matched": gettext_lazy("Line %(line)s is not matched yet. Try again in a minute."),
    "decided": gettext_lazy("Somebody has decided about the money of line %(line)s."),
    "fee": gettext_lazy("Line %(line)s named the fee of payment %(payment)s."),
    "debit": gettext_lazy("Line %(line)s says that the bank took money back."),
    "credited": gettext_lazy("The money of line %(line)s was credited to payment %(payment)s."),
    "told": gettext_lazy("The merchant was told about the money of line %(line)s, for payment %(payment)s."),
    "reported": gettext_lazy(
        "The bank itself, or a second person, has confirmed the money of line %(line)s."
    ),
}


def check(statement: Statement) -> None:
    """Raises ActRefused with a sentence that names the line which prevents the undo."""
    if statement.undone_at is not None:
        raise ActRefused(_("This import was undone already."))
    if statement.completed_at is None:
        raise ActRefused(_("This import has not ended. Wait, or import the file again."))
    if statement.fee_count:
        raise ActRefused(_("This import named fees of lines that were imported before."))
    found = rows.run(
        "SELECT line, why, payment FROM reconciliation_undo_obstacle(%s)", [statement.pk]
    ).fetchone()
    if found is not None:
        raise ActRefused(WHY_NOT[found[1]] % {"line": found[0], "payment": found[2]})
    if len(_made(statement)) + len(_messages(statement)) > MAX_UNDONE:
        raise ActRefused(
            _("This import brought more than %(most)s exceptions.") % {"most": f"{MAX_UNDONE:,}"}
        )


def explain(statement: Statement) -> str:
    """What goes. Raises ActRefused."""
    check(statement)
    return _of(statement, _("Nobody has acted on this import. %(what)s A later import brings them again."))


def undo(statement_id: str, *, note: str, now: datetime) -> str:
    """Returns what went, in a sentence for staff. Raises ActRefused; then nothing changes."""
    unlocked = Statement.objects.filter(pk=statement_id).first()
    if unlocked is None:
        raise ActRefused(_("There is no statement with this id."))
    with recorded(Act.STATEMENT_UNDONE, unlocked, reason=note):
        rows.run(LOCK_LINES, [unlocked.bank])  # first, as an import has it
        names = (deduplication.lock_name(unlocked.bank, each) for each in _made(unlocked))
        deduplication.lock_names(names)  # another report of this money comes before or after
        statement = Statement.objects.select_for_update().get(pk=statement_id)
        of_lines = BankTransaction.objects.filter(statement_line__statement=statement).order_by("pk")
        list(of_lines.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
        list(BankNotification.objects.select_for_update(no_key=True).filter(pk__in=_messages(statement)))
        check(statement)
        told = _of(statement, _("The import is undone. %(what)s Now the right file can be imported."))
        made, messages = _made(statement), _messages(statement)
        statement.undone_at = now
        statement.save(update_fields=["undone_at"])
        for each in made:
            each.resolve(ResolutionState.UNDONE, now=now)
        listing.close(*messages)
        types = {each.id: ResolutionType.UNDONE for each in made} | dict.fromkeys(
            messages, ResolutionType.DISMISSED
        )
        columns = {"note": note, "created_at": now, **request_context.columns()}
        rows.insert_many([Resolution(subject_id=key, type=type, **columns) for key, type in types.items()])
        statement.lines.all().delete()
        if made:
            amounts = {each.id: each.amount for each in made}
            ledger.unhold(amounts, source=accounts.bank(statement.bank), now=now)
    return told


def _made(statement: Statement) -> list[BankTransaction]:
    """The money that only this import reports."""
    found = BankTransaction.objects.filter(
        statement_line__statement=statement, statement_line__result=LineResult.NEW
    )
    return list(found.order_by("pk")[: MAX_UNDONE + 1])


def _messages(statement: Statement) -> list[str]:
    """The open exceptions of its unreadable lines."""
    listed = ReconciliationException.objects.filter(
        reason=ExceptionReason.UNREADABLE,
        bank=statement.bank,
        opened_at__range=(statement.created_at, statement.completed_at),
    )
    found = BankNotification.objects.filter(pk__in=listed.values("pk"), request_id=statement.request_id)
    return list(found.order_by("pk").values_list("pk", flat=True)[: MAX_UNDONE + 1])


def _of(statement: Statement, text: str) -> str:
    made, messages = _made(statement), _messages(statement)
    what = _(
        "Lines that go: %(lines)s. Unknown money that leaves suspense: %(amount)s (%(count)s). Exceptions of "
        "unreadable lines that close: %(messages)s."
    ) % {
        "lines": f"{statement.lines.count():,}",
        "amount": money.display(sum(each.amount for each in made)),
        "count": f"{len(made):,}",
        "messages": f"{len(messages):,}",
    }
    return text % {"what": what}
