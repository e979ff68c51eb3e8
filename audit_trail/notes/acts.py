"""What staff do with notes: write one, hand over, ask finance, and answer."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail import presentation
from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act
from audit_trail.note_models import MAX_LENGTH, ROLE, Note
from audit_trail.notes import services
from core import money, request_context
from core.console import personal_data

FINANCE = f"{ROLE}finance"
CODENAME = "hand_over"
"""The permission of those that something can be handed over to: they can answer."""
BACKEND = "django.contrib.auth.backends.ModelBackend"


class NoteForm(ReasonForm):
    """The text takes the place of the reason: the audit trail keeps what may be erased nowhere else."""

    reason = None  # type: ignore[assignment]
    text = forms.CharField(
        label=gettext_lazy("Note"),
        max_length=MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy("Only staff read it. Nobody can change it later."),
    )

    def clean(self) -> dict[str, Any]:
        return {**(super().clean() or {}), "reason": ""}


class HandOverForm(NoteForm):
    to = forms.ChoiceField(label=gettext_lazy("To"))

    def __init__(self, row: Any, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        roles = Group.objects.filter(permissions__codename=CODENAME).order_by("name")
        permitted = User.objects.with_perm(f"audit_trail.{CODENAME}", backend=BACKEND)
        people = permitted.filter(is_staff=True).order_by("username")
        self.fields["to"].choices = [  # type: ignore[attr-defined]
            (_("Roles"), [(f"{ROLE}{each.name}", each.name) for each in roles]),
            (_("Colleagues"), [(request_context.actor_of(each), str(each)) for each in people]),
        ]
        self.order_fields(["to"])


def shown_text(note: Note) -> str:
    """A note may name a customer. It is empty after an erasure."""
    return personal_data.message(note.text) if note.text else _("(erased)")


def find_open(row: Any) -> Note | None:
    """The hand-over of this row that waits for an answer."""
    return Note.objects.open().about([services.subject_id(row)]).first()


def _explain_asking(object_type: str, row: Any) -> str:
    text = _(
        "Finance sees in its inbox: your text, your name %(name)s, the time, and a link to this: %(object)s. "
        "It stays there until somebody answers. You read the answer here. The merchant sees nothing of it."
    )
    name, amount = request_context.display_name(request_context.current().actor), getattr(row, "amount", None)
    thing = row if amount is None else f"{presentation.type_label(object_type)} {money.display(amount)}"
    return text % {"name": name, "object": thing}


def _explain_answer(row: Any) -> str:
    if (asked := find_open(row)) is None:
        return ""
    words = {"name": asked.by, "text": shown_text(asked)}
    return _("%(name)s wrote: “%(text)s” Your answer closes it.") % words


def _run(act: Act, object_type: str, to: str | None, row: Any, values: dict[str, Any], now: datetime) -> None:
    to = to or values.get("to")
    services.write(act, row, values["text"], now, object_type=object_type, handed_to=to)


def note_acts(object_type: str) -> tuple[ObjectAct, ...]:
    def act(
        slug: str, label: Promise, kind: Act, codename: str, explain: Any, to: str | None = None, **more: Any
    ) -> ObjectAct:
        declared: dict[str, Any] = {"form": NoteForm, **more}
        return ObjectAct(
            slug=slug,
            label=label,
            act=kind,
            permission=f"audit_trail.{codename}",
            explain=explain,
            run=partial(_run, kind, object_type, to),
            is_recorded_by_service=True,
            keeps_page=True,
            **declared,
        )

    return (
        act(
            "note", gettext_lazy("Write a note"), Act.NOTED, "write_note",
            gettext_lazy("Staff see it on this page and in the timeline, with your name and the time."),
        ),
        act(
            "hand-over", gettext_lazy("Hand over"), Act.HANDED_OVER, CODENAME,
            gettext_lazy("It is in the inbox of this person or role until somebody answers."),
            form=HandOverForm,
        ),
        act(
            "ask-finance", gettext_lazy("Ask finance"), Act.HANDED_OVER, "ask_finance",
            partial(_explain_asking, object_type), FINANCE,
        ),
        act(
            "answer", gettext_lazy("Answer and close"), Act.ANSWERED, CODENAME, _explain_answer,
            is_possible=lambda row, now: find_open(row) is not None,
        ),
    )  # fmt: skip


SLUGS = frozenset(each.slug for each in note_acts(""))
