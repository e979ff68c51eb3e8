"""Notes of staff about a payment, exception, refund, withdrawal or approval, and hand-overs to colleagues."""

from collections.abc import Iterable
from typing import Any, Self

from django.contrib import admin
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core import request_context
from core.database import triggers
from core.database.columns import CausedRow, PublicId, PublicIdKey

MAX_LENGTH = 2_000
OPEN_CONSTRAINT = "note_open_once"
IS_OPEN = Q(handed_to__isnull=False, answer__isnull=True)
ROLE = "role:"
"""Before the name of a role in `handed_to`. A person is there as an actor, such as `staff:somsri`."""


class NoteQuerySet(models.QuerySet["Note"]):
    def open(self) -> Self:
        """Hand-overs without an answer."""
        return self.filter(IS_OPEN)

    def with_person(self, user: Any) -> Self:
        return self.open().filter(handed_to=request_context.actor_of(user))

    def with_team(self, user: Any) -> Self:
        """Those that wait for a role of this person."""
        return self.open().filter(handed_to__in=[f"{ROLE}{each.name}" for each in user.groups.all()])

    def about(self, subject_ids: Iterable[str]) -> Self:
        return self.filter(subject_id__in=subject_ids)


class Note(CausedRow):
    """A text of a member of staff. One with `handed_to` waits until another note answers it."""

    id = PublicIdKey()
    subject_id = PublicId()  # what it is about: of an approval its withdrawal, refund or return
    object_type = models.CharField(max_length=80)  # The model of the page, such as refunds.refund.
    object_id = PublicId()  # the row of the page
    text = models.TextField(verbose_name=_("note"))
    handed_to = models.CharField(max_length=160, null=True, verbose_name=_("handed over to"))  # noqa: DJ001
    answer: Any = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="question", verbose_name=_("answer")
    )
    created_at = models.DateTimeField(verbose_name=_("time"))

    objects = NoteQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = _("hand-over"), _("hand-overs")
        default_permissions = ("view",)
        permissions = [
            ("write_note", "Can write notes"),
            ("hand_over", "Can hand over to colleagues and roles, and answer"),
            ("ask_finance", "Can ask finance"),
        ]
        triggers = [
            triggers.keep_rows("a note is never deleted"),
            triggers.ReadOnly("a note stays as it was written", exclude=["answer"], erasable=["text"]),
            triggers.set_once("answer_id", "a hand-over keeps its answer"),
            triggers.Refuse(
                "text_of_a_person",
                triggers.INSERT,
                "a note is a text of a member of staff, which nobody has answered",
                condition=f"NEW.text !~ '[^[:space:]]' OR length(NEW.text) > {MAX_LENGTH} "
                "OR NOT starts_with(NEW.actor, 'staff:') OR NEW.handed_to !~ '^(role|staff):.' "
                "OR NEW.answer_id IS NOT NULL",
            ),
        ]
        indexes = [
            models.Index(fields=["subject_id", "created_at"], name="note_of_subject"),
            models.Index(fields=["actor", "created_at"], name="note_of_actor"),
            models.Index(fields=["handed_to", "created_at"], condition=IS_OPEN, name="note_open"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["subject_id"], condition=IS_OPEN, name=OPEN_CONSTRAINT)
        ]

    @property
    @admin.display(description=_("by"))
    def by(self) -> str:
        return request_context.display_name(self.actor)

    @property
    @admin.display(description=_("handed over to"))
    def to(self) -> str:
        """The name of the person or role that it waits for, or waited for."""
        return request_context.display_name(self.handed_to or "").removeprefix(ROLE)
