"""One act on several rows of a list: choose rows, read what happens to each, confirm, and see the results.

Each row is an act of its own: its own transaction, checks and record. So the limits of approvals count each
row as if staff had acted on it alone.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid5

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import model_ngettext
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _, gettext_noop

from audit_trail.act_pages import ActingAdmin, ObjectAct, ReasonForm, find_act
from audit_trail.acts import ActRefused
from core import clock, money

log = logging.getLogger("audit_trail")
# Each row takes some 30 ms, and the person waits for all of them.
MAX_ROWS = 200
# By the tone of a row.
OUTCOMES = {
    "good": gettext_noop("Done: %(count)s."),
    "wait": gettext_noop("Waiting for a second person: %(count)s."),
    "bad": gettext_noop("Refused: %(count)s."),
}


@dataclass(slots=True)
class ChosenRow:
    """A chosen row, with what the act will do to it, and what became of it.

    row: as the functions of an act get it, or None for an unknown id.
    tone: empty if the act is possible, then "good" if it was done, "wait" if it waits, "bad" if refused.
    """

    id: str
    row: Any
    title: str
    merchant: Any
    amount: int | None
    explanation: str = ""
    tone: str = ""
    result: str = ""

    @property
    def choice(self) -> str:
        """The value of the form: the id, and a digest of what staff read about the row."""
        return f"{self.id}:{hashlib.sha256(self.explanation.encode()).hexdigest()[:16]}"

    @property
    def baht(self) -> str:
        return "" if self.amount is None else money.display(self.amount)


class BulkActPages(ActingAdmin):
    """Adds acts on several rows to a list."""

    def chosen_rows(self, ids: Sequence[str]) -> list[ChosenRow]:
        """These rows, in this order, by a fixed number of statements."""
        raise NotImplementedError

    def get_actions(self, request: HttpRequest) -> Any:
        """The acts that this member of staff may do. The list sends the chosen rows to `_choose`."""
        if IS_POPUP_VAR in request.GET:
            return {}
        return {
            each.slug: (_choose, each.slug, str(each.label))
            for each in self.object_acts
            if each.is_bulk and request.user.has_perm(each.permission)
        }

    def list_act_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Do an act to the rows of the form, and show the result of each."""
        found = self.bulk_act(slug)
        self.check_permission(request, None, found)
        if request.method != "POST":
            raise PermissionDenied
        form = found.form(None, request.POST, user=request.user)
        return self.act_on(request, found, request.POST.getlist("row"), form)

    def bulk_act(self, slug: str) -> ObjectAct:
        """Raises Http404."""
        return find_act((each for each in self.object_acts if each.is_bulk), slug)

    def act_on(
        self, request: HttpRequest, found: ObjectAct, choices: Collection[str], form: ReasonForm
    ) -> HttpResponse:
        """Explain the act on each row or, with a valid form, do it to each that is as staff saw it."""
        ids = list(dict.fromkeys(choice.partition(":")[0] for choice in choices))
        if len(ids) > MAX_ROWS:
            text = _("You chose more than %(count)s rows. Choose fewer: nothing changed.")
            messages.error(request, text % {"count": MAX_ROWS})
            return HttpResponseRedirect(self.url(request, "changelist"))
        found.check_confirmation()  # before somebody types
        rows = self.chosen_rows(ids)
        for chosen in rows:
            self._explain(found, chosen)
        if form.is_valid():
            for chosen in (each for each in rows if not each.tone):
                self._do_once(found, chosen, choices, form.cleaned_data)
        context = self._told(found, rows, is_done=form.is_valid()) | {
            "rows": rows,
            "form": form if any(not each.tone for each in rows) else None,
            "is_last_step": True,
            "act_url": self.url(request, "list_act", found.slug),
        }
        return self.act_response(request, None, found, context, "admin/bulk_act.html")

    def _told(self, found: ObjectAct, rows: Sequence[ChosenRow], *, is_done: bool) -> dict[str, Any]:
        """What will happen to the rows, or what happened, in sentences."""
        possible, counts = [each for each in rows if not each.tone], Counter(each.tone for each in rows)
        tone = "bad" if counts["bad"] else "wait" if counts["wait"] else "good"
        told = [_(text) % {"count": counts[each]} for each, text in OUTCOMES.items() if counts[each]]
        if possible:
            words = {
                "act": found.label,
                "count": len(possible),
                "rows": model_ngettext(self.opts, len(possible)),
                "amount": money.display(sum(each.amount or 0 for each in possible)),
            }
            text = _(
                "%(act)s: %(count)s %(rows)s, %(amount)s. Each is decided, checked and recorded on its own. "
                "One above the limit waits for a second person."
            )
            tone, told = "wait", [text % words, *told]
        elif not is_done:
            told = [_("This is possible for none of the chosen rows.")]
        return {"tone": tone, "explanation": " ".join(told)}

    def _explain(self, found: ObjectAct, chosen: ChosenRow) -> None:
        """An explanation may name the payer and the account."""
        try:
            if chosen.row is None:
                raise ActRefused(_("It does not exist."))
            if not found.is_possible(chosen.row, clock.now()):
                raise ActRefused(_("This is not possible now."))
            chosen.explanation = found.explanation(chosen.row)
            self.record_view(chosen.id)
        except ActRefused as refusal:
            chosen.tone, chosen.result = "bad", str(refusal)

    def _do_once(
        self, found: ObjectAct, chosen: ChosenRow, choices: Collection[str], values: dict[str, Any]
    ) -> None:
        own = values | {"token": uuid5(values["token"], chosen.id)}  # each row has a record of its own
        try:
            if chosen.choice not in choices:
                raise ActRefused(_("It has changed since you saw it. Look at it again."))
            told = found.told(chosen.row, self.perform(found, chosen.row, own))
            chosen.tone, chosen.result = "good" if told.is_good else "wait", told.text
        except ActRefused as refusal:
            chosen.tone, chosen.result = "bad", str(refusal)
        except Exception:  # the rows before it are done, and staff must see which
            log.exception("%s of %s failed", found.slug, chosen.id)
            chosen.tone = "bad"
            chosen.result = _("A fault prevented it. Look at it before you try again.")


def _choose(page: BulkActPages, request: HttpRequest, chosen: Any) -> HttpResponse:
    """The chosen rows, also those that somebody has resolved meanwhile, which `chosen` leaves out."""
    ids = request.POST.getlist(ACTION_CHECKBOX_NAME)
    if request.POST.get("select_across") == "1":
        ids = list(chosen.values_list("pk", flat=True)[: MAX_ROWS + 1])
    found = page.bulk_act(request.POST["action"])
    return page.act_on(request, found, ids, found.form(None, user=request.user))
