from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import path

from shop.site import site
from shop.till import pages

USE = "shop.use_till"


def _of_till(view: Callable[..., HttpResponse]) -> Any:
    """A page of the shop, for the roles that use the till.

    A till that is open while its person chooses another shop asks for nothing there.
    """

    @wraps(view)
    def page(request: Any, **kwargs: str) -> HttpResponse:
        shown = request.membership.merchant_id
        if not request.user.has_perm(USE) or request.headers.get("Till-Merchant", shown) != shown:
            raise PermissionDenied
        return view(request, **kwargs)

    return site.admin_view(page)


urlpatterns = [
    path("", _of_till(pages.page), name="till"),
    path("/manifest", _of_till(pages.manifest), name="till-manifest"),
    path("/worker", _of_till(pages.worker), name="till-worker"),
    path("/codes", _of_till(pages.make_code), name="till-codes"),
    path("/codes/<str:qr_code_id>/expire", _of_till(pages.end_code), name="till-code-expire"),
    path("/state", _of_till(pages.state), name="till-state"),
    path("/slip", _of_till(pages.check_slip), name="till-slip"),
]
