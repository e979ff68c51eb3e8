"""The page on which a payer proves a payment and names the account that its refund goes to.

It needs no key, because nobody can guess the link. It shows nothing about the payer, and never says which
proof would be right.
"""

import re
import unicodedata
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt

from core import api, client_addresses, clock, money, rate_limits, thaibanks
from core.errors import ApiError, MethodNotAllowed
from core.rate_limits import RateLimit
from merchants.models import Mode
from qrcodes.errors import TooManyPageRequests
from qrcodes.payment_page import LANGUAGES, language_of
from reconciliation.claims import proof
from refunds import claims
from refunds.claims import ClaimLinkClosed, ClaimNotProven, TooManyClaimTries
from refunds.errors import RefundNotAddressable
from refunds.models import ClaimLink, Refund, RefundPendingReason, RefundStatus

# Of one network. Wrong proofs are limited in the database, see `refunds.claims`.
RATE = RateLimit(per_second=0.5, burst=30)
METHODS = ("GET", "HEAD", "POST")
MAX_REFERENCE_LENGTH, MAX_NAME_LENGTH = 64, 140
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_ENDED = {
    RefundStatus.COMPLETED: "sent",
    RefundStatus.FAILED: "failed",
    RefundStatus.CANCELED: "canceled",
}


class ClaimForm(forms.Form):
    """A proof of the payment, and an account."""

    slip_reference = forms.CharField(
        required=False,
        max_length=MAX_REFERENCE_LENGTH,
        label=gettext_lazy("Reference on the slip of your payment"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters"}),
    )
    last_digits = forms.RegexField(
        r"\A[0-9]{4}\Z",
        required=False,
        label=gettext_lazy("Or the last 4 digits of the account that you paid from"),
        error_messages={"invalid": gettext_lazy("Write 4 digits.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric", "maxlength": 4}),
    )
    bank_code = forms.ChoiceField(label=gettext_lazy("Your bank"))
    bank_account = forms.CharField(
        max_length=30,
        label=gettext_lazy("Your account number"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )
    account_name = forms.CharField(
        max_length=MAX_NAME_LENGTH,
        label=gettext_lazy("Name of the account"),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="")
        for field in self.fields.values():
            field.error_messages["required"] = _("Fill in this field.")
        self.fields["bank_code"].choices = [("", _("Choose a bank")), *_banks()]  # type: ignore[attr-defined]

    def clean_bank_account(self) -> str:
        """The digits. People copy spaces and dashes from their app."""
        return re.sub(r"[\s-]", "", self.cleaned_data["bank_account"])

    def clean_account_name(self) -> str:
        name = str(self.cleaned_data["account_name"])
        if any(unicodedata.category(character).startswith("C") for character in name):
            raise forms.ValidationError(_("Write the name in one line."))
        return name

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and not values["slip_reference"] and not values["last_digits"]:
            self.add_error("slip_reference", _("Give the reference, or the last 4 digits."))
        if not self.errors:
            try:
                thaibanks.check_account(values["bank_code"], values["bank_account"])
            except ValueError:
                self.add_error("bank_account", _wrong_length(values["bank_code"]))
        return values

    @property
    def proofs(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("slip_reference", "last_digits")}

    @property
    def destination(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("bank_code", "bank_account", "account_name")}


@csrf_exempt  # the link is the secret; there is no cookie
def page(request: HttpRequest, token: str) -> HttpResponse:
    if request.method not in METHODS:
        response = api.error_response(MethodNotAllowed(method=request.method), request)
        response.headers["Allow"] = ", ".join(METHODS)
        return response
    language = language_of(request)
    with translation.override(language):
        try:
            response = _respond(request, token, language)
        except ClaimLinkClosed:
            response = _refuse(request, "closed", language, status=404)
        except TooManyClaimTries:
            response = _refuse(request, "tries", language, status=403)
        except TooManyPageRequests as error:
            response = _refuse(request, "rate", language, status=error.status)
            response.headers["Retry-After"] = str(error.retry_after)
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    response.headers["Content-Language"] = language
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _refuse(request: HttpRequest, reason: str, language: str, *, status: int) -> HttpResponse:
    context = {"reason": reason, "language": language}
    return render(request, "refunds/no_claim.html", context, status=status)


def _respond(request: HttpRequest, token: str, language: str) -> HttpResponse:
    """Raises TooManyPageRequests, ClaimLinkClosed, TooManyClaimTries."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    room = rate_limits.consume(f"claim-page:{network}", RATE)
    if room is not None and not room.allowed:
        raise TooManyPageRequests(retry_after=room.retry_after)
    link = claims.open_link(token, now=clock.now())
    if request.method != "POST":
        return _show(request, link, ClaimForm(), language)
    form = ClaimForm(request.POST)
    if not form.is_valid() or not _is_accepted(link, form, network):
        return _show(request, claims.open_link(token, now=clock.now()), form, language, status=422)
    chosen = urlencode({"lang": language})
    return HttpResponseRedirect(f"{reverse('claim-page', args=[token])}?{chosen}", status=303)


def _is_accepted(link: ClaimLink, form: ClaimForm, network: str) -> bool:
    """Send the refund, or say why not. Raises ClaimLinkClosed, TooManyClaimTries."""
    try:
        claims.claim(
            link,
            form.destination,
            is_proven=lambda payment: proof.is_right(payment, **form.proofs),
            network=network,
            now=clock.now(),
        )
    except ClaimNotProven:
        form.add_error(None, _("This does not match the payment. Look at the slip again."))
    except RefundNotAddressable:
        return True  # somebody named an account a moment ago: the page shows what became of it
    except ApiError:  # the bank, or the merchant's list of payout accounts
        form.add_error(None, _("No money can be sent to this account. Name another one, or ask the shop."))
    return not form.errors


def _show(
    request: HttpRequest, link: ClaimLink, form: ClaimForm, language: str, status: int = 200
) -> HttpResponse:
    refund, merchant = link.refund, link.refund.payment.merchant
    context = {
        "state": _state(link, refund),
        "form": form,
        "shop": merchant.name,
        "amount": money.display(refund.amount),
        "reference": refund.payment.reference,
        "tries_left": link.tries_left,
        "until": f"{link.expires_at.astimezone(clock.BANGKOK):%Y-%m-%d %H:%M}",
        "is_test": merchant.mode == Mode.TEST,
        "language": language,
        "languages": [(code, name, "?" + urlencode({"lang": code})) for code, name in LANGUAGES.items()],
    }
    return render(request, "refunds/claim.html", context, status=status)


def _state(link: ClaimLink, refund: Refund) -> str:
    if refund.status in _ENDED:
        return _ENDED[RefundStatus(refund.status)]
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        return "sending"
    return "open" if link.tries_left else "blocked"


def _banks() -> list[tuple[str, str]]:
    is_thai = translation.get_language() == "th"
    return [(bank.code, bank.name_th if is_thai else bank.name) for bank in thaibanks.BANKS]


def _wrong_length(bank_code: str) -> str:
    bank = thaibanks.find(bank_code)
    shortest, longest = bank.digits if bank else (thaibanks.MIN_DIGITS, thaibanks.MAX_DIGITS)
    digits = str(shortest) if shortest == longest else f"{shortest}-{longest}"
    return _("An account number of this bank has %(digits)s digits.") % {"digits": digits}
