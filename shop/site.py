"""The site at /shop/: Django's admin for the people of one merchant."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.i18n import set_language

from console.people import invitations, sign_in
from console.site import SiteOfPeople
from core.console import sites
from core.console.sites import SHOP
from operations.data_protection import shop_fence
from shop import entrance, files, home, looks, menu, month, people
from shop.models import Membership

Handler = Callable[[HttpRequest], HttpResponse]
View = Callable[..., Any]
SITE_PAGES = {
    *("index", "login", "logout", "jsi18n", "password_change"),
    *("password_change_done", "search", "search_typed"),
}
MODEL_PAGES = ("_changelist", "_change", "_act", "_list_act", "_evidence")
CLOSED = _("These pages are not set up yet. Ask the operator of the service to look at its check.")
LOOKS_ONLY = _("You look at the shop as its owner does, and can change nothing.")


class ShopRequests:
    """Middleware: addresses below /shop/ are those of `shop.urls`, so no page links to the console."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        if request.path_info.startswith(SHOP):
            request.urlconf, request.admin_site = "shop.urls", site
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, shop_fence.FenceMissing):
            return sites.refusal(request, _("Not now"), CLOSED, status=503)
        return None


class ShopSite(SiteOfPeople):
    index_template = "shop/index.html"
    site_url = None
    searched = (
        *("payments.payment", "links.paymentlink", "refunds.refund", "withdrawals.withdrawal"),
        *("settlements.settlement", "transactions.transaction"),
    )

    def has_permission(self, request: HttpRequest) -> bool:
        return sign_in.is_complete(request) and entrance.enter(request) is not None

    def admin_view(self, view: View, cacheable: bool = False) -> Any:
        """Show a page of the shop behind the fence. Who has no shop, or several, chooses first."""
        inner = super().admin_view(_fenced(view), cacheable)

        def page(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            is_known = request.user.is_authenticated and sign_in.is_complete(request)
            if is_known and entrance.enter(request) is None:
                return entrance.choice(request)
            return inner(request, *args, **kwargs)

        return page

    def get_urls(self) -> list[Any]:
        return [
            path("invitation/", never_cache(invitations.invitation_page), name="invitation"),
            path("switch/", never_cache(entrance.choice), name="switch"),
            path("look/<str:merchant_id>/", never_cache(looks.page), name="look"),
            path("exports/", self.admin_view(files.of_list), name="exports"),
            path("month/", self.admin_view(month.page), name="month"),
            path("people/", self.admin_view(people.page), name="people"),
            path("language/", set_language, name="language"),
            *_allowed(super().get_urls()),
        ]

    def index(self, request: Any, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return super().index(request, home.context(request) | (extra_context or {}))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        return []  # the menu has the pages

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        membership: Membership | None = getattr(request, "membership", None)
        return super().each_context(request) | {
            "site_header": membership.merchant.name if membership else self.site_title,
            "membership": membership,
            "menu": SimpleLazyObject(lambda: menu.of(self, request)),
        }


def _fenced(view: View) -> View:
    def page(request: Any, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST" and request.membership.is_look:
            return sites.refusal(request, _("Not allowed"), LOOKS_ONLY, status=403)
        if request.method == "POST":
            return view(request, *args, **kwargs)
        with shop_fence.reading_for(request.membership.merchant_id):
            shown = view(request, *args, **kwargs)
            return shown.render() if hasattr(shown, "render") else shown

    return page


def _allowed(patterns: list[Any]) -> list[Any]:
    """Pages that read, and acts. None that adds, changes or deletes a row in another way."""
    found: list[Any] = []
    for each in patterns:
        if isinstance(each, URLResolver):
            kept = [page for page in each.url_patterns if _is_page_of_model(page)]
            found.append(path(str(each.pattern), (kept, None, None)))
        elif each.name in SITE_PAGES:
            found.append(each)
    return found


def _is_page_of_model(page: Any) -> bool:
    return isinstance(page, URLPattern) and (page.name or "").endswith(MODEL_PAGES)


site = ShopSite(name="shop")
