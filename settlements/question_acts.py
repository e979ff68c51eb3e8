"""How staff close a question about a settlement."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act
from core import money
from settlements import failed_transfers, questions
from settlements.models import AcquirerTransfer, OpenQuestion


class QuestionForm(ReasonForm):
    note = forms.CharField(
        max_length=255,
        label=gettext_lazy("Answer"),
        help_text=gettext_lazy("What it was, for whoever closes the month."),
    )
    is_booked = forms.BooleanField(
        required=False,
        label=gettext_lazy("Book the difference as a loss of the operator"),
        help_text=gettext_lazy("Only if the acquirer will not settle it."),
    )


def _explain(question: OpenQuestion) -> str:
    text = _("%(question)s. Difference: %(amount)s. A closed question stays closed.")
    words = {"question": question.get_kind_display(), "amount": money.display(question.difference)}
    return text % words


def _close(question: OpenQuestion, values: dict[str, Any], now: datetime) -> OpenQuestion:
    try:
        return questions.close(question.pk, note=values["note"], is_booked=values["is_booked"], now=now)
    except IntegrityError:
        raise ValidationError({"is_booked": _("There is no such loss that could be taken back.")}) from None


class FailedTransferForm(ReasonForm):
    note = QuestionForm.base_fields["note"]
    failed_transfer = forms.ModelChoiceField(
        AcquirerTransfer.objects.none(),
        label=gettext_lazy("Transfer that failed"),
        empty_label=None,
        widget=forms.RadioSelect,
    )

    def __init__(self, row: OpenQuestion, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        self.fields["failed_transfer"].queryset = failed_transfers.candidates(row)  # type: ignore[attr-defined]


def _explain_failed(question: OpenQuestion) -> str:
    text = _("The payments of the failed transfer are settled: %(transfer)s paid them, %(amount)s in all.")
    return text % {"transfer": question.transfer, "amount": money.display(question.difference)}


def _pay(question: OpenQuestion, values: dict[str, Any], now: datetime) -> OpenQuestion:
    failed, note = values["failed_transfer"].pk, values["note"]
    try:
        return failed_transfers.pay_by_later_one(question.pk, failed_id=failed, note=note, now=now)
    except IntegrityError:
        raise ValidationError(
            {"failed_transfer": _("Another question has it, or the later transfer lists an item of it.")}
        ) from None


_closed = partial(
    ObjectAct, act=Act.QUESTION_CLOSED, permission="settlements.close_question", is_recorded_by_service=True
)
QUESTION_ACTS = (
    _closed(
        "close", gettext_lazy("Close the question"), explain=_explain, run=_close,
        is_possible=lambda question, now: question.closed_at is None, form=QuestionForm,
    ),
    _closed(
        "failed-transfer", gettext_lazy("It is the money of a failed transfer"), explain=_explain_failed,
        run=_pay,
        is_possible=lambda question, now: (
            question.closed_at is None and failed_transfers.candidates(question).exists()
        ),
        form=FailedTransferForm,
    ),
)  # fmt: skip
