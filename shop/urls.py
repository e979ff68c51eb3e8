"""The addresses of /shop/, in place of those of `config.urls`: `shop.site.ShopRequests` says so."""

from django.urls import include, path

from shop.site import site

urlpatterns = [
    path("shop/", include("console.people.urls")),
    path("shop/till", include("shop.till.urls")),
    path("shop/", site.urls),
]
handler400 = "core.http.api.bad_request"
handler404 = "core.http.api.not_found"
handler429 = "console.people.page_limits.too_many_requests"
handler500 = "console.people.page_limits.server_error"
