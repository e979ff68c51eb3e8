"""Staff look at a shop as its owner sees it: with a reason, on record, and without a change."""

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from audit_trail.act_pages import ReasonForm
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import sign_in
from console.people.roles import ShopRole
from core import ids
from core.console import sites
from merchants.models import Merchant
from shop.models import Membership, Person

LOOK = "shop.look_at_shop"
LOOKING = "shop_look"
"""In the session of a member of staff: the merchant whose pages are shown."""


def page(request: HttpRequest, merchant_id: str) -> HttpResponse:
    """Ask for the reason, and begin."""
    if not (request.user.is_staff and sign_in.is_complete(request) and request.user.has_perm(LOOK)):
        raise PermissionDenied
    known = Merchant.objects.filter(pk=merchant_id) if ids.looks_right(merchant_id, "mch_") else None
    merchant = known.first() if known is not None else None
    if merchant is None:
        raise Http404
    form = ReasonForm(merchant, request.POST or None, user=request.user)
    if form.is_valid():
        values = form.cleaned_data
        with recorded(Act.SHOP_VIEWED, merchant, reason=values["reason"], form_token=values["token"]):
            request.session[LOOKING] = merchant.pk
        return HttpResponseRedirect(reverse("admin:index"))
    return sites.page(request, "shop/look.html", _("Look at the shop"), form=form, shop=merchant)


def current(request: HttpRequest) -> Membership | None:
    """What this member of staff looks at, if anything."""
    merchant_id = request.session.get(LOOKING)
    if merchant_id is None or not request.user.has_perm(LOOK):
        return None
    person = Person.objects.get(username=request.user.get_username())
    merchant = Merchant.objects.get(pk=merchant_id)
    return Membership(user=person, merchant=merchant, role=ShopRole.OWNER)


def end(request: HttpRequest) -> HttpResponse:
    request.session.pop(LOOKING, None)
    return HttpResponseRedirect(sites.CONSOLE)
