"""The page on which a payer proves a payment and names the account that its refund goes to.

It needs no key, because nobody can guess the link. It shows nothing about the payer, and never says which
proof would be right.
"""

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from core import clock, money
from core.errors import ApiError
from core.http import client_addresses, rate_limits, uploads
from core.http.rate_limits import RateLimit
from merchants import payer_pages
from merchants.payer_pages import language_of
from qrcodes.errors import TooManyPageRequests
from reconciliation.claims import proof
from reconciliation.claims.form import ACCOUNT, ClaimForm
from reconciliation.slips import pictures
from reconciliation.slips.pictures import UnreadablePicture
from refunds import claims
from refunds.claims import ClaimNotProven, ClaimRefused
from refunds.errors import RefundNotAddressable
from refunds.models import ClaimLink, Refund, RefundPendingReason, RefundStatus

# Of one network. Wrong proofs are limited in the database, see `refunds.claims`.
RATE = RateLimit(per_second=0.5, burst=30)
POLICY = "form-action 'self'; frame-ancestors 'none'"
REFUSED = "refunds/no_claim.html"


@payer_pages.with_form
def page(request: HttpRequest, token: str) -> HttpResponse:
    try:
        return _respond(request, token)
    except ClaimRefused as refusal:
        status = 404 if refusal.reason == "closed" else 403
        return payer_pages.respond(request, REFUSED, {"reason": refusal.reason}, status=status)
    except TooManyPageRequests as error:
        return payer_pages.refuse(request, REFUSED, error, reason="rate")


def overloaded_page(request: HttpRequest) -> bytes:
    """The page for a form that gets no thread, in the language of the visitor."""
    return _overloaded_page(language_of(request))


@cache
def _overloaded_page(language: str) -> bytes:
    """Made once for each language, because the event loop makes it."""
    with translation.override(language):
        context = {"reason": "rate", "language": language}
        return loader.render_to_string(REFUSED, context).encode()


def _respond(request: HttpRequest, token: str) -> HttpResponse:
    """Raises TooManyPageRequests, ClaimRefused."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"claim-page:{network}", RATE, TooManyPageRequests)
    link = claims.open_link(token, now=clock.now())
    if request.method != "POST":
        return _show(request, link, ClaimForm())
    if uploads.is_too_large(request.META) and link.takes_an_account:
        # The web server has dropped the form with its picture.
        problem = pictures.TOO_MANY_BYTES
        return _show(request, link, ClaimForm(), status=413, problem=problem)
    form = ClaimForm(request.POST, request.FILES)
    if not form.is_valid() or not _is_accepted(link, form, network):
        return _show(request, claims.open_link(token, now=clock.now()), form, status=422)
    return payer_pages.lead_to("claim-page", token)


def _is_accepted(link: ClaimLink, form: ClaimForm, network: str) -> bool:
    """Send the refund, or say why not. Raises ClaimRefused."""
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
    request: HttpRequest, link: ClaimLink, form: ClaimForm, *, status: int = 200, problem: str | Promise = ""
) -> HttpResponse:
    refund, merchant = link.refund, link.refund.payment.merchant
    context = {
        "state": _state(link, refund),
        "is_named_by_payer": link.used_at is not None,
        "form": form,
        "problem": problem,
        "amount": money.with_sign(refund.amount),
        "reference": refund.payment.reference,
        "tries_left": link.tries_left,
        "until": clock.display_to_payer(link.expires_at),
    }
    return payer_pages.respond(
        request, "refunds/claim.html", context, merchant=merchant, policy=POLICY, status=status
    )


def _state(link: ClaimLink, refund: Refund) -> str:
    if refund.status == RefundStatus.COMPLETED:
        return "sent"
    if refund.status != RefundStatus.PENDING:
        return refund.status  # failed or canceled
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        return "sending"
    return "open" if link.tries_left else "blocked"
