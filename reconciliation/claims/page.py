"""The page on which a payer proves a payment and names the account that its refund goes to.

It needs no key, because nobody can guess the link. It shows nothing about the payer, and never says which
proof would be right.
"""

from functools import cache
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template import loader
from django.urls import reverse
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from core import clock, money
from core.errors import ApiError, MethodNotAllowed
from core.http import api, client_addresses, rate_limits, uploads
from core.http.rate_limits import RateLimit
from merchants.models import Mode
from qrcodes.errors import TooManyPageRequests
from qrcodes.payment_page import language_links, language_of
from reconciliation.claims import proof
from reconciliation.claims.form import ACCOUNT, ClaimForm
from reconciliation.slips import pictures
from reconciliation.slips.pictures import UnreadablePicture
from refunds import claims
from refunds.claims import ClaimLinkClosed, ClaimNotProven, ClaimsOfNetworkBlocked, TooManyClaimTries
from refunds.errors import RefundNotAddressable
from refunds.models import ClaimLink, Refund, RefundPendingReason, RefundStatus

# Of one network. Wrong proofs are limited in the database, see `refunds.claims`.
RATE = RateLimit(per_second=0.5, burst=30)
METHODS = ("GET", "HEAD", "POST")
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
REFUSALS: dict[type[Exception], tuple[str, int]] = {
    ClaimLinkClosed: ("closed", 404),
    TooManyClaimTries: ("tries", 403),
    ClaimsOfNetworkBlocked: ("network", 403),
}


@csrf_exempt  # the link is the secret; there is no cookie
def page(request: HttpRequest, token: str) -> HttpResponse:
    if request.method not in METHODS:
        # Django's decorator would log the path, which is the secret.
        response = api.error_response(MethodNotAllowed(method=request.method), request)
        response.headers["Allow"] = ", ".join(METHODS)
        return response
    language = language_of(request)
    with translation.override(language):
        try:
            response = _respond(request, token, language)
        except tuple(REFUSALS) as refusal:
            reason, status = REFUSALS[type(refusal)]
            response = _refuse(request, reason, language, status=status)
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


def overloaded_page(request: HttpRequest) -> bytes:
    """The page for a form that gets no thread, in the language of the visitor."""
    return _overloaded_page(language_of(request))


@cache
def _overloaded_page(language: str) -> bytes:
    """Made once for each language, because the event loop makes it."""
    with translation.override(language):
        context = {"reason": "rate", "language": language}
        return loader.render_to_string("refunds/no_claim.html", context).encode()


def _respond(request: HttpRequest, token: str, language: str) -> HttpResponse:
    """Raises TooManyPageRequests, ClaimLinkClosed, TooManyClaimTries, ClaimsOfNetworkBlocked."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"claim-page:{network}", RATE, TooManyPageRequests)
    link = claims.open_link(token, now=clock.now())
    if request.method != "POST":
        return _show(request, link, ClaimForm(), language)
    if uploads.is_too_large(request.META) and link.takes_an_account:
        # The web server has dropped the form with its picture.
        problem = pictures.TOO_MANY_BYTES
        return _show(request, link, ClaimForm(), language, status=413, problem=problem)
    form = ClaimForm(request.POST, request.FILES)
    if not form.is_valid() or not _is_accepted(link, form, network):
        return _show(request, claims.open_link(token, now=clock.now()), form, language, status=422)
    chosen = urlencode({"lang": language})
    return HttpResponseRedirect(f"{reverse('claim-page', args=[token])}?{chosen}", status=303)


def _is_accepted(link: ClaimLink, form: ClaimForm, network: str) -> bool:
    """Send the refund, or say why not.

    Raises ClaimLinkClosed, TooManyClaimTries, ClaimsOfNetworkBlocked.
    """
    try:
        digits, picture = form.cleaned_data["last_digits"], form.cleaned_data["picture"]
        typed = form.cleaned_data["slip_reference"]
        references = [typed] if typed else []
        if picture and link.takes_an_account:  # otherwise `claims.claim` refuses it in any case
            references.append(proof.read_slip(picture, merchant_id=link.refund.merchant_id))
        claims.claim(
            link,
            {name: form.cleaned_data[name] for name in ACCOUNT},
            is_proven=lambda payment: proof.is_right(payment, slip_references=references, last_digits=digits),
            network=network,
            now=clock.now(),
        )
    except UnreadablePicture as reason:
        form.add_error("picture", str(reason))
    except ClaimNotProven:
        form.add_error(None, _("This does not match the payment. Look at the slip again."))
    except RefundNotAddressable:
        return True  # somebody named an account a moment ago: the page shows what became of it
    except ApiError:  # the bank, or the merchant's list of payout accounts
        form.add_error(None, _("No money can be sent to this account. Name another one, or ask the shop."))
        form.ask_for_picture_again()
    return not form.errors


def _show(
    request: HttpRequest,
    link: ClaimLink,
    form: ClaimForm,
    language: str,
    *,
    status: int = 200,
    problem: str | Promise = "",
) -> HttpResponse:
    refund, merchant = link.refund, link.refund.payment.merchant
    context = {
        "state": _state(link, refund),
        "is_named_by_payer": link.used_at is not None,
        "form": form,
        "problem": problem,
        "shop": merchant.name,
        "amount": money.display(refund.amount),
        "reference": refund.payment.reference,
        "tries_left": link.tries_left,
        "until": f"{link.expires_at.astimezone(clock.BANGKOK):%Y-%m-%d %H:%M}",
        "is_test": merchant.mode == Mode.TEST,
        "language": language,
        "languages": language_links(),
    }
    return render(request, "refunds/claim.html", context, status=status)


def _state(link: ClaimLink, refund: Refund) -> str:
    if refund.status == RefundStatus.COMPLETED:
        return "sent"
    if refund.status != RefundStatus.PENDING:
        return refund.status  # failed or canceled
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        return "sending"
    return "open" if link.tries_left else "blocked"
