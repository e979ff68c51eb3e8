"""The menu of a shop: the pages that the role of this person may see."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.lists.navigation import Link, MenuItem
from shop import month, people

SETTINGS = "merchants.merchant"
"""The page of the only row, and not its list."""
LISTS = (
    ("payments", _("Payments"), "payments.payment"),
    ("links", _("Payment links"), "links.paymentlink"),
    ("exceptions", _("Exceptions"), "payments.paymentexception"),
    ("refunds", _("Refunds"), "refunds.refund"),
    ("withdrawals", _("Withdrawals"), "withdrawals.withdrawal"),
    ("settlements", _("Settlements"), "settlements.settlement"),
    ("statements", _("Transactions"), "transactions.transaction"),
    ("approvals", _("Payout accounts"), "approvals.payoutaccount"),
    ("merchants", _("Settings"), SETTINGS),
    ("system", _("Keys"), "merchants.apikey"),
    ("webhooks", _("Webhooks and messages"), "webhooks.endpoint"),
    ("webhooks", _("Deliveries"), "webhooks.delivery"),
    ("audit", _("API requests"), "request_log.requestrecord"),
)
PAGES = (
    ("statements", _("Month"), "month", month.SEE),
    ("team", _("People"), "people", people.SEE),
)


def of(site: Any, request: HttpRequest) -> list[MenuItem]:
    return list(_items(site, request)) if site.has_permission(request) else []


def _items(site: Any, request: Any) -> Iterator[MenuItem]:
    if request.user.has_perm("shop.use_till"):
        url = reverse("till")
        yield MenuItem("till", _("Till"), [Link(_("Till"), url, request.path == url)])
    for name, label, model in LISTS:
        app_label, model_name = model.split(".")
        if request.user.has_perm(f"{app_label}.view_{model_name}"):
            url = reverse(f"admin:{app_label}_{model_name}_changelist")
            is_current = request.path.startswith(url)
            if model == SETTINGS:
                key = quote(request.membership.merchant_id)
                url = reverse(f"admin:{app_label}_{model_name}_change", args=[key])
            yield MenuItem(name, label, [Link(label, url, is_current)])
    for name, label, page, permission in PAGES:
        if request.user.has_perm(permission):
            url = reverse(f"admin:{page}")
            yield MenuItem(name, label, [Link(label, url, request.path == url)])
