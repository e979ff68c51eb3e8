"""Which merchant's pages a request shows, and in which role."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import rotate_token
from django.urls import reverse
from django.utils.translation import gettext as _

from console.people import sign_in
from core import request_context
from core.console import personal_data, sites
from shop import looks
from shop.models import Membership

CHOSEN = "shop"
"""In a session: the merchant whose pages this person chose."""
# A person rarely has more than three.
MAX_SHOPS = 100


def enter(request: Any) -> Membership | None:
    """The membership by which this request is served. From then on its user has the rights of this role."""
    if not hasattr(request, "membership"):
        request.membership = found = _found(request)
        if found is not None:
            found.user.membership = found
            request.user = found.user
            request_context.set_actor(
                request_context.actor_of(request.user),
                session=request_context.session_digest(request.session.session_key),
                hides_personal_data=not request.user.has_perm(personal_data.PERMISSION),
            )
    membership: Membership | None = request.membership
    return membership


def of_user(user: Any) -> list[Membership]:
    if not user.is_authenticated or user.is_staff:
        return []
    active = Membership.objects.filter(user_id=user.pk, user__is_active=True, ended_at=None)
    return list(active.select_related("user", "merchant").order_by("merchant__name", "id")[:MAX_SHOPS])


def choice(request: HttpRequest) -> HttpResponse:
    """Choose one of several shops, or read that there is none."""
    if getattr(request.user, "is_staff", False):
        return looks.end(request)
    found = of_user(request.user)
    wanted = request.POST.get("merchant")
    if wanted in {each.merchant_id for each in found}:
        request.session[CHOSEN] = wanted
        # A form of another tab shows the other shop, so it changes nothing.
        rotate_token(request)
        request.session.pop(sign_in.WAITING_FORMS, None)
        return HttpResponseRedirect(reverse("admin:index"))
    status = 200 if found else 403
    return sites.page(request, "shop/choice.html", _("Your shops"), status=status, memberships=found)


def _found(request: Any) -> Membership | None:
    if getattr(request.user, "is_staff", False):
        return looks.current(request)
    found = of_user(request.user)
    wanted = request.session.get(CHOSEN)
    by_merchant = {each.merchant_id: each for each in found}
    return by_merchant.get(wanted) or (found[0] if len(found) == 1 else None)
