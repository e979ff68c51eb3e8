"""The page on which staff check a slip that a payer shows, and the slips that were shown."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from core import clock, ids
from core.admin import ReadOnlyAdmin
from receipts import slip_asking, slip_pictures, slip_words, slips
from receipts.looking import may_look
from receipts.models import SlipCheck
from receipts.slip_asking import NotAsked
from receipts.slip_words import Said
from receipts.slips import Checked, NotASlip


class SlipForm(forms.Form):
    text = forms.CharField(
        required=False,
        max_length=512,
        label="What the slip's QR code says",
        widget=forms.TextInput(attrs={"size": 80, "autofocus": True}),
    )
    picture = forms.FileField(
        required=False,
        label="Or a picture of the slip",
        help_text="PNG, JPEG or WebP up to 5 MB. It is not kept.",
    )
    shown_for = forms.CharField(
        required=False,
        label="Shown for payment",
        help_text="If you know: pay_...",
        max_length=ids.MAX_LENGTH,
        widget=forms.TextInput(attrs={"size": 36}),
    )

    def clean_picture(self) -> list[str]:
        """What the QR codes on it say."""
        picture = self.cleaned_data["picture"]
        try:
            return slip_pictures.texts(picture.read(slip_pictures.MOST_BYTES + 1)) if picture else []
        except slip_pictures.NotReadable as fault:
            raise forms.ValidationError(str(fault)) from None

    def clean_shown_for(self) -> str | None:
        given = str(self.cleaned_data["shown_for"])
        if given and not ids.looks_right(given, "pay_"):
            raise forms.ValidationError("The id of a payment begins with pay_.")
        return given or None

    def clean(self) -> dict[str, Any]:
        filled = super().clean() or self.cleaned_data
        if not filled.get("text") and not filled.get("picture") and not self.errors:
            raise forms.ValidationError("Paste the text, or choose a picture.")
        return filled


class AskForm(forms.Form):
    of = forms.CharField(
        label="Ask the bank of",
        help_text="The payment (pay_...) that it is shown for, or a merchant (mch_...).",
        max_length=ids.MAX_LENGTH,
        widget=forms.TextInput(attrs={"size": 36}),
    )


class SlipCheckAdmin(ReadOnlyAdmin):
    list_display = ["at", "sending_bank", "transaction_id", "receipt", "shown_for", "by"]
    list_select_related = ["receipt"]
    list_filter = [("receipt", admin.EmptyFieldListFilter)]
    search_fields = ["=transaction_id", "=receipt__id", "=shown_for"]

    def get_urls(self) -> list[URLPattern]:
        check = self.admin_site.admin_view(self.check_view)
        ask = self.admin_site.admin_view(self.ask_view)
        return [
            path("check/", check, name="receipts_slipcheck_check"),
            path("<int:number>/ask/", ask, name="receipts_slipcheck_ask"),
            *super().get_urls(),
        ]

    def check_view(self, request: HttpRequest) -> HttpResponse:
        if not may_look(request):
            raise PermissionDenied
        form = SlipForm(request.POST or None, request.FILES or None, initial=request.GET.dict())
        checked = self._check(request, form) if form.is_bound and form.is_valid() else None
        if checked is None:
            return self._page(request, form=form)
        self.record_view(str(checked.id))
        return self._page(
            request,
            form=SlipForm(),
            said=slip_words.of(checked),
            receipt=checked.receipt,
            number=checked.id,
            ask=_asking(checked),
        )

    def ask_view(self, request: HttpRequest, number: int) -> HttpResponse:
        """A question to a bank about a slip that was checked."""
        if not may_look(request):
            raise PermissionDenied
        shown, form = get_object_or_404(SlipCheck, pk=number), AskForm(request.POST or None)
        said = self._ask(request, shown, form) if form.is_valid() else []
        return self._page(request, form=SlipForm(), said=said, number=number, ask=form)

    def _page(self, request: HttpRequest, **context: Any) -> HttpResponse:
        known = {**self.admin_site.each_context(request), "title": "Check a slip", **context}
        return TemplateResponse(request, "admin/receipts/check_slip.html", known)

    def _ask(self, request: HttpRequest, shown: SlipCheck, form: AskForm) -> list[Said]:
        of = form.cleaned_data["of"]
        self.log_change(request, shown, f"Asked the bank of {of}.")
        self.record_view(str(shown.pk))
        try:
            return slip_words.of_bank(slip_asking.ask(shown, of=of, now=clock.now))
        except NotAsked as why:
            return [("error", str(why))]

    def _check(self, request: HttpRequest, form: SlipForm) -> Checked | None:
        """Raises nothing: what is not a slip becomes an error of the form."""
        filled = form.cleaned_data
        texts = [filled["text"]] if filled["text"] else filled["picture"]
        by, now = request.user.get_username(), clock.now()
        try:
            return slips.check(slips.likeliest(texts), shown_for=filled["shown_for"], by=by, now=now)
        except NotASlip as fault:
            form.add_error(None, str(fault))
            return None


def _asking(checked: Checked) -> AskForm | None:
    """None where we know of the transfer, or the bank that would have to be asked knows no slips."""
    if checked.receipt is not None or not slip_asking.can_be_asked(checked.sending_bank):
        return None
    if checked.shown_for and slip_asking.merchant_of(checked.shown_for) is None:
        return None
    return AskForm(initial={"of": checked.shown_for})
