"""The navigation of the console: sections by task, in the order in which staff need them.

Models that no section names, and the details of each section, are internals. They are in the last section,
*System*.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from core.admin_exports import PERMISSION as EXPORT

Label = str | Promise


@dataclass(frozen=True)
class Page:
    """A page of the site that is no list."""

    label: Label
    name: str
    permission: str


@dataclass(frozen=True)
class Section:
    """A task of staff and the lists that belong to it: labels of models, the main list first.

    `details` are for experts: the menu has them in *System*. The search of the console does not read them.
    """

    name: str
    label: Label
    models: tuple[str, ...]
    details: tuple[str, ...] = ()
    pages: tuple["Page", ...] = ()

    @property
    def lists(self) -> tuple[str, ...]:
        return self.models + self.details


@dataclass(frozen=True)
class Link:
    """A link to a list. `is_current` marks the list of the shown page."""

    label: Label
    url: str
    is_current: bool


@dataclass(frozen=True)
class MenuItem:
    """A section as one user sees it, with the lists that this user may view."""

    name: str
    label: Label
    links: list[Link]

    @property
    def url(self) -> str:
        return self.links[0].url

    @property
    def is_current(self) -> bool:
        return any(link.is_current for link in self.links)


SECTIONS = (
    Section(
        "payments",
        _("Payments"),
        ("payments.payment", "qrcodes.qrcode", "payments.cardcharge"),
        (
            "transactions.transaction",
            "payments.chargeanswer",
            "payments.paymentexception",
            "reconciliation.inquiry",
            "reconciliation.inquiryanswer",
            "reconciliation.confirmationinquiry",
            "ledger.account",
            "ledger.journal",
            "ledger.entry",
        ),
    ),
    Section("refunds", _("Refunds"), ("refunds.refund", "refunds.refundreversal")),
    Section(
        "withdrawals",
        _("Withdrawals"),
        ("withdrawals.withdrawal", "transfers.transfer", "transfers.safemode"),
        ("transfers.transferevent",),
    ),
    Section("approvals", _("Approvals"), ("approvals.approval",)),
    Section(
        "exceptions",
        _("Exceptions"),
        (
            "reconciliation.reconciliationexception",
            "reconciliation.slipcheck",
            "reconciliation.banktransaction",
            "reconciliation.return",
        ),
        ("reconciliation.resolution", "transfers.transfercontradiction"),
    ),
    Section(
        "merchants",
        _("Merchants"),
        (
            "merchants.merchant",
            "merchants.apikey",
            "merchants.bankconnection",
            "approvals.payoutaccount",
            "approvals.payoutpolicy",
        ),
        ("request_log.requestrecord",),
    ),
    Section(
        "webhooks",
        _("Webhooks"),
        ("webhooks.endpoint", "webhooks.event", "webhooks.delivery"),
        ("webhooks.endpointhealth", "webhooks.endpointaction", "webhooks.deliveryattempt"),
    ),
    Section(
        "statements",
        _("Statements"),
        ("reconciliation.statement", "reconciliation.banknotification"),
        ("reconciliation.statementline",),
        (Page(_("Monthly report"), "monthly_report", EXPORT), Page(_("Exports"), "exports", EXPORT)),
    ),
    Section("audit", _("Audit"), ("audit_trail.auditrecord", "operations.dailyclose", "operations.jobrun")),
    Section(
        "team",
        _("Team"),
        ("auth.user", "auth.group"),
        (),
        (Page(_("Lift a lockout"), "lift_lockout", "console.lift_lockout"),),
    ),
)
NAMED = {label for section in SECTIONS for label in section.lists}


def menu(site: admin.AdminSite, request: HttpRequest) -> list[MenuItem]:
    """Return the sections with at least one list that the user may view."""
    items = [_item(site, request, section) for section in (*SECTIONS, _system(site))]
    return [item for item in items if item.links]


def _system(site: admin.AdminSite) -> Section:
    rest = sorted(_label_of(model) for model in site._registry if _label_of(model) not in NAMED)
    details = sorted(label for section in SECTIONS for label in section.details)
    return Section("system", _("System"), (*details, *rest))


def _item(site: admin.AdminSite, request: HttpRequest, section: Section) -> MenuItem:
    return MenuItem(section.name, section.label, list(_links(site, request, section)))


def _links(site: admin.AdminSite, request: HttpRequest, section: Section) -> Iterator[Link]:
    by_label = {_label_of(model): model_admin for model, model_admin in site._registry.items()}
    for label in section.models:
        model_admin: Any = by_label[label]
        if not model_admin.has_view_permission(request):
            continue
        url = reverse(f"{site.name}:{label.replace('.', '_')}_changelist")
        name = capfirst(model_admin.opts.verbose_name_plural)
        yield Link(name, url, is_current=request.path.startswith(url))
    for page in section.pages:
        if request.user.has_perm(page.permission):
            url = reverse(f"{site.name}:{page.name}")
            yield Link(page.label, url, is_current=request.path.startswith(url))


def _label_of(model: Any) -> str:
    return str(model._meta.label_lower)
