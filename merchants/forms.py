"""The forms for a new merchant, its name, a new API key, and one in the place of another."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ReasonForm
from core.http.scopes import Scope
from merchants import page_origins, page_settings
from merchants.models import LINE_ID, MAX_LOGO, PHONE, ApiKey, LateMoneyPolicy, Merchant, Mode, PageSettings
from merchants.services import DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS

MAX_HOURS = 10 * 366 * 24
PAGE_TEXTS = ("color", "phone", "email", "line_id", "offers_new_code")
WITHDRAWAL_KEY_PERMISSION = "merchants.issue_withdrawal_key"


class NameForm(ReasonForm):
    name = forms.CharField(
        max_length=140,
        label=_("Name"),
        help_text=_("What the shop is called. Customers who pay by card see it."),
    )

    def __init__(self, row: Merchant | None, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        if row is not None:
            self.fields["name"].initial = row.name


class NewMerchantForm(NameForm):
    """Test or live never changes. The policy for late money can be changed later."""

    mode = forms.ChoiceField(
        choices=[
            (Mode.TEST.value, _("Test: the sandbox bank pays, and no money moves")),
            (Mode.LIVE.value, _("Live: customers pay to its own account at its bank")),
        ],
        widget=forms.RadioSelect,
        label=_("Test or live"),
        help_text=_("It never changes."),
    )
    late_money = forms.ChoiceField(
        choices=[
            (LateMoneyPolicy.REVIEW.value, _("Staff decide about each")),
            (LateMoneyPolicy.ACCEPT.value, _("They succeed, and nobody has to decide")),
        ],
        initial=LateMoneyPolicy.REVIEW.value,
        widget=forms.RadioSelect,
        label=_("Payments after the expiry of their code"),
        help_text=_("It can be changed on the page of the merchant."),
    )


class HoldsForm(ReasonForm):
    holds_payers = forms.ChoiceField(widget=forms.RadioSelect, label=_("Payments to hold"))

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        field: Any = self.fields["holds_payers"]
        field.choices, field.initial = row._meta.get_field("holds_payers").flatchoices, row.holds_payers


class TaxForm(ReasonForm):
    tax_id = forms.CharField(
        required=False,
        max_length=20,
        label=_("Tax id"),
        help_text=_("13 digits. Leave empty if there is none."),
    )
    branch = forms.CharField(
        required=False, max_length=5, label=_("Branch"), help_text=_("5 digits. 00000 is the head office.")
    )
    withholds = forms.BooleanField(
        required=False,
        label=_("It withholds tax"),
        help_text=_("3 percent of the fees without VAT, as companies do."),
    )

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        shown = {"tax_id": row.tax_id, "branch": row.tax_branch, "withholds": row.withholds_tax}
        self.initial.update(shown)


class OriginsForm(ReasonForm):
    origins = forms.CharField(
        required=False,
        max_length=3000,
        widget=forms.Textarea(attrs={"rows": 4, "cols": 40}),
        label=_("Sites"),
        help_text=_("One per line, such as https://shop.example. Leave empty for none."),
    )

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        self.fields["origins"].initial = "\n".join(row.page_origins)

    def clean_origins(self) -> list[str]:
        texts = str(self.cleaned_data["origins"]).split()
        try:
            return page_origins.parse(texts, is_live=self.row.mode == Mode.LIVE)
        except ValueError as refusal:
            raise ValidationError(str(refusal)) from None


class PageSettingsForm(ReasonForm):
    """How the payment page shows the shop. An empty text is not shown."""

    logo = forms.FileField(
        required=False,
        widget=forms.FileInput(attrs={"accept": "image/png,image/jpeg"}),
        label=_("Logo"),
        help_text=_("PNG or JPEG, at most 200 kB and 2,000 by 2,000 pixels. Leave empty to keep it."),
    )
    removes_logo = forms.BooleanField(required=False, label=_("Remove the logo"))
    color = forms.RegexField(
        "^#[0-9A-Fa-f]{6}$",
        required=False,
        label=_("Colour"),
        help_text=_("Such as #0a7d3c. Texts on it are black or white, whichever is easier to read."),
    )
    phone = forms.RegexField(
        f"^{PHONE}$",
        required=False,
        label=_("Telephone of the shop"),
        help_text=_("Digits, spaces, hyphens. Payers see it."),
    )
    email = forms.EmailField(required=False, label=_("E-mail of the shop"), help_text=_("Payers see it."))
    line_id = forms.RegexField(
        f"^{LINE_ID}$",
        required=False,
        label=_("LINE id of the shop"),
        help_text=_("Such as @somtam for an official account. Payers see it."),
    )
    offers_new_code = forms.BooleanField(
        required=False,
        label=_("Payers can make a new code"),
        help_text=_(
            "After a code expired or was declined, if it has a reference: with the same amount, reference "
            "and metadata, as a new payment."
        ),
    )

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        found = PageSettings.objects.defer("logo").filter(pk=row.pk).first()
        if found is not None:
            self.initial.update({name: getattr(found, name) for name in PAGE_TEXTS})

    def clean_color(self) -> str:
        return str(self.cleaned_data["color"]).lower()

    def clean_logo(self) -> bytes | None:
        given = self.cleaned_data["logo"]
        return page_settings.drawn_logo(given.read(MAX_LOGO + 1)) if given else None


class IssueKeyForm(ReasonForm):
    """Scopes, networks and lifetime. The scope to withdraw is only for staff with a permission of its own."""

    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, widget=forms.CheckboxSelectMultiple, label=_("What the key may do")
    )
    networks = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40}),
        label=_("Networks from which it may be used"),
        help_text=_("One network per line, such as 203.0.113.0/24. Leave empty to allow any."),
    )
    hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_HOURS,
        label=_("Expires after (hours)"),
        help_text=_("Leave empty for a key without expiry."),
    )

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        may_withdraw = user.has_perm(WITHDRAWAL_KEY_PERMISSION)
        offered = [choice for choice in Scope.choices if may_withdraw or choice[0] != Scope.WITHDRAWALS_WRITE]
        scopes: Any = self.fields["scopes"]
        scopes.choices, scopes.initial = offered, [value for value, _ in offered]

    def clean_networks(self) -> list[str]:
        return str(self.cleaned_data["networks"]).replace(",", " ").split()


class RollKeyForm(ReasonForm):
    """How long the old key works on. A key that can withdraw needs the permission to issue such a key."""

    overlap_hours = forms.IntegerField(
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=DEFAULT_OVERLAP_HOURS,
        label=_("The old key works on for (hours)"),
        help_text=_("0 ends it at once. At most 168."),
    )

    def clean(self) -> dict[str, Any] | None:
        key: ApiKey = self.row
        may_withdraw = self.user.has_perm(WITHDRAWAL_KEY_PERMISSION)
        if Scope.WITHDRAWALS_WRITE in key.scopes and not may_withdraw:
            raise ValidationError(
                gettext("This key can withdraw. You do not have the permission to issue such a key.")
            )
        return super().clean()
