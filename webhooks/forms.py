"""The form of a destination of the operator, and what the forms of shops have of it."""

from collections.abc import Iterable, Sequence

from django import forms
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ReasonForm
from webhooks.destinations import TYPES
from webhooks.messages import texts
from webhooks.models import EventType, Language, StaffEventType


def events_field(types: Iterable[EventType | StaffEventType], chosen: Sequence[str]) -> forms.Field:
    """The events that an endpoint gets, in words."""
    return forms.MultipleChoiceField(
        choices=[(each.value, texts.WORDS[each]) for each in types],
        initial=chosen,
        widget=forms.CheckboxSelectMultiple,
        label=_("Events"),
    )


class DestinationForm(ReasonForm):
    type = forms.ChoiceField(
        choices=[(each.value, each.label) for each in TYPES], widget=forms.RadioSelect, label=_("Kind")
    )
    to = forms.CharField(
        max_length=254,
        label=_("To"),
        help_text=_("An email address, or the id of a LINE user, group or room."),
    )
    line_token = forms.CharField(
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        label=_("Channel access token"),
        help_text=_("Of your LINE channel. Nobody can read it later. Leave empty for an email address."),
    )
    events = events_field(StaffEventType, list(StaffEventType))
    language = forms.ChoiceField(choices=Language.choices, initial=Language.TH, label=_("Language"))
    quiet_hours = forms.CharField(
        required=False,
        max_length=11,
        label=_("Quiet hours"),
        help_text=_("In Bangkok, such as 22:00-07:00. Messages wait for their end."),
    )
