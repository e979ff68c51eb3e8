"""Write a note, hand something over, and answer. The audit trail records each, without the text."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from audit_trail import recording
from audit_trail.acts import Act, ActRefused
from audit_trail.note_models import OPEN_CONSTRAINT, Note
from core import ids, request_context

# Of one person in an hour. `audit_trail_limit_notes` has the same number.
MAX_NOTES, LIMIT = 60, "too many notes"


def subject_id(row: Any) -> str:
    """What the notes of a page are about. An approval is about its withdrawal, refund or return."""
    return str(getattr(row, "subject_id", row.pk))


@transaction.atomic
def write(
    act: Act, row: Any, text: str, now: datetime, *, object_type: str, handed_to: str | None = None
) -> Note:
    """Write a note. An answer or a hand-over ends what was open. row: of the page. Raises ActRefused."""
    about, key = subject_id(row), ids.new("nte_", now)
    if act != Act.NOTED:
        earlier = Note.objects.open().about([about]).select_for_update().first()
        if earlier is not None:
            now = max(now, earlier.created_at)  # it was written while this one waited for its lock
            earlier.answer_id = key
            earlier.save(update_fields=["answer"])
        elif act == Act.ANSWERED:
            raise ActRefused(_("A colleague has answered it."))
    caused = request_context.columns()
    note = Note(id=key, subject_id=about, object_type=object_type, object_id=row.pk, text=text, **caused)
    note.created_at, note.handed_to = now, handed_to
    try:
        note.save(force_insert=True)
    except IntegrityError as error:
        if OPEN_CONSTRAINT in str(error):
            raise ActRefused(_("A colleague has handed it over at the same time.")) from None
        if LIMIT not in str(error):
            raise
        refusal = _("You have written %(count)s notes within an hour. Wait before you write more.")
        raise ActRefused(refusal % {"count": MAX_NOTES}) from None
    details = {"note": key} | ({"handed_to": note.to} if handed_to else {})
    recording.write(act, getattr(row, "subject", row), after=details)
    return note
