"""Slip checks in the console: the page to check a slip, and the list of checks."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from audit_trail.acts import Act
from audit_trail.pages import ReadOnlyAdmin
from audit_trail.recording import recorded
from core import clock, ids, plain_text
from core.console.form_fields import PlainCharField
from reconciliation.models import SlipCheck
from reconciliation.slips import checking, explanations, pictures
from reconciliation.slips.explanations import Finding

CHECK_PERMISSION, ASK_PERMISSION = "reconciliation.check_slip", "reconciliation.ask_bank"


class SlipForm(forms.Form):
    text = forms.CharField(
        required=False,
        max_length=512,
        label=_("Text of the slip's QR code"),
        widget=forms.TextInput(attrs={"size": 80, "autofocus": True}),
    )
    picture = forms.FileField(
        required=False,
        label=_("Or a picture of the slip"),
        help_text=_("PNG, JPEG or WebP up to 10 MB. It is not stored."),
    )
    claimed_payment_id = PlainCharField(
        plain=plain_text.visible,
        required=False,
        label=_("Shown for payment"),
        help_text=_("If you know: pay_..."),
        max_length=ids.MAX_LENGTH,
        widget=forms.TextInput(attrs={"size": 36}),
    )

    def clean_picture(self) -> list[str]:
        """The texts of the QR codes on the picture."""
        picture = self.cleaned_data["picture"]
        try:
            return pictures.read_qr_codes(picture.read(pictures.MAX_BYTES + 1)) if picture else []
        except pictures.UnreadablePicture as error:
            raise forms.ValidationError(str(error)) from None

    def clean_claimed_payment_id(self) -> str | None:
        value = str(self.cleaned_data["claimed_payment_id"])
        if value and not ids.looks_right(value, "pay_"):
            raise forms.ValidationError(_("The id of a payment begins with pay_."))
        return value or None

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        texts = [values["text"]] if values.get("text") else values.get("picture")
        if not texts and not self.errors:
            raise forms.ValidationError(_("Paste the text, or choose a picture."))
        try:
            values["slip"] = checking.parse_slip(texts) if texts else None
        except checking.InvalidSlip as error:
            raise forms.ValidationError(str(error)) from None
        return values


class AskBankForm(forms.Form):
    payment_or_merchant_id = PlainCharField(
        plain=plain_text.visible,
        label=_("Ask the bank of"),
        help_text=_("The payment (pay_...) that the slip is for, or a merchant (mch_...)."),
        max_length=ids.MAX_LENGTH,
        widget=forms.TextInput(attrs={"size": 36}),
    )


class SlipCheckAdmin(ReadOnlyAdmin):
    list_display = [
        *("checked_at", "sending_bank", "transaction_id", "bank_transaction", "claimed_payment_id"),
        *("verdict", "actor"),
    ]
    list_select_related = ["bank_transaction"]
    list_filter = ["verdict", ("bank_transaction", admin.EmptyFieldListFilter)]
    search_fields = ["=transaction_id", "=bank_transaction__id", "=claimed_payment_id"]

    def get_urls(self) -> list[URLPattern]:
        check = self.admin_site.admin_view(self.check_view)
        ask = self.admin_site.admin_view(self.ask_view)
        return [
            path("check/", check, name="reconciliation_slipcheck_check"),
            path("<str:slip_check_id>/ask/", ask, name="reconciliation_slipcheck_ask"),
            *super().get_urls(),
        ]

    def check_view(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm(CHECK_PERMISSION):
            raise PermissionDenied
        form = SlipForm(request.POST or None, request.FILES or None, initial=request.GET.dict())
        if not (form.is_bound and form.is_valid()):
            return self._page(request, form=form)
        slip, claimed = form.cleaned_data["slip"], form.cleaned_data["claimed_payment_id"]
        known = {"bank_transaction": checking.find_transactions(*slip).first(), "claimed_payment_id": claimed}
        result = checking.record(*slip, **known, now=clock.now())
        self.record_view(str(result.id))
        return self._page(
            request,
            form=SlipForm(),
            findings=list(explanations.of_slip(result)),
            bank_transaction=result.bank_transaction,
            slip_check_id=quote(result.id),
            ask_form=_ask_form(result) if request.user.has_perm(ASK_PERMISSION) else None,
        )

    def ask_view(self, request: HttpRequest, slip_check_id: str) -> HttpResponse:
        """Ask a bank about a slip that was checked."""
        if not request.user.has_perm(ASK_PERMISSION):
            raise PermissionDenied
        slip_check = get_object_or_404(SlipCheck, pk=unquote(slip_check_id))
        form = AskBankForm(request.POST or None)
        found: list[Finding] = []
        if form.is_valid():
            named = form.cleaned_data["payment_or_merchant_id"]
            # Before the question: the bank may answer after this process has died.
            with recorded(Act.BANK_ASKED, slip_check) as recording:
                recording.details["payment_or_merchant_id"] = named
            self.record_view(str(slip_check.pk))
            try:
                answer = checking.ask_bank(slip_check, payment_or_merchant_id=named, now=clock.now)
                found = explanations.of_bank_answer(answer)
            except checking.BankCheckFailed as error:
                found = [("error", str(error))]
        return self._page(
            request, form=SlipForm(), findings=found, slip_check_id=slip_check_id, ask_form=form
        )

    def _page(self, request: HttpRequest, **context: Any) -> HttpResponse:
        all_context = {**self.admin_site.each_context(request), "title": _("Check a slip"), **context}
        return TemplateResponse(request, "admin/reconciliation/check_slip.html", all_context)


def _ask_form(result: SlipCheck) -> AskBankForm | None:
    """None if the transfer is known, or if no bank can be asked about it."""
    if result.bank_transaction is not None or result.sending_bank == checking.TRUEMONEY:
        return None
    if result.claimed_payment_id and checking.bank_for(result.claimed_payment_id) is None:
        return None
    return AskBankForm(initial={"payment_or_merchant_id": result.claimed_payment_id})
