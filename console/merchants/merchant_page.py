"""Everything about one merchant that staff see on its page, and what is missing before it can be paid."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy

import banks
from approvals import payout_accounts
from approvals.models import PayoutAccount
from audit_trail.act_pages import ActLink
from console.approvals.payout_admin import PAYOUT_ACTS
from console.merchants import fee_acts
from console.merchants.connection_acts import CONNECTION_ACTS
from core import clock
from core.console import admin_columns
from core.http.scopes import Scope
from ledger import services as ledger
from merchants import bank_connections
from merchants.admin import MerchantAdmin
from merchants.models import ApiKey, BankConnection, Merchant, Mode
from webhooks.admin import describe_state
from webhooks.models import Endpoint, EndpointStatus
from withdrawals.models import NEEDS_STAFF, PayoutNight, PayoutSchedule, Withdrawal
from withdrawals.payout_acts import PAYOUT_SCHEDULE_ACTS

# Each table shows this many rows. A merchant rarely has more than five keys.
MAX_ROWS = 20
# Acts that stand beside what they change. The others are above the page.
KEY_ACT, BANK_ACTS = "issue-key", ("connect-", "standby-", "renew-", "test-", "set-fees")
PAYOUT_SLUGS = frozenset(act.slug for act in PAYOUT_ACTS)
NIGHTLY_SLUGS = frozenset(act.slug for act in PAYOUT_SCHEDULE_ACTS)
MAX_NIGHTS = 7
# The lists with rows of a merchant, and how their address names it.
LISTS = (
    (gettext_lazy("Payments"), "payments.payment", "merchant"),
    (gettext_lazy("Refunds"), "refunds.refund", "merchant"),
    (gettext_lazy("Withdrawals"), "withdrawals.withdrawal", "merchant"),
    (gettext_lazy("Nightly payouts"), "withdrawals.payoutnight", "q"),
    (gettext_lazy("Exceptions"), "reconciliation.reconciliationexception", "merchant"),
    (gettext_lazy("Keys"), "merchants.apikey", "q"),
    (gettext_lazy("Endpoints"), "webhooks.endpoint", "q"),
    (gettext_lazy("Payout accounts"), "approvals.payoutaccount", "q"),
)
LIST_PERMISSIONS = {"reconciliation.reconciliationexception": "reconciliation.view_banktransaction"}


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the merchant still needs, and where it is done."""

    text: str
    links: Sequence[ActLink] = ()


class MerchantPageAdmin(MerchantAdmin):
    change_form_template = "admin/merchant.html"
    object_acts = MerchantAdmin.object_acts + CONNECTION_ACTS + fee_acts.FEE_ACTS + PAYOUT_ACTS
    object_acts += PAYOUT_SCHEDULE_ACTS
    fields = (
        *("mode", "late_money", "may_withdraw_unsettled", "refuses_open_reference", "proof_page"),
        *("holds_payers", "page_origins", "tax_id", "tax_branch", "withholds_tax", "created_at"),
    )

    def page_context(self, request: HttpRequest, row: Merchant) -> dict[str, Any]:
        """Each part needs the right to view its model."""
        may, links, now = request.user.has_perm, self.act_links(request, row), clock.now()
        key_links = [each for each in links if each.slug == KEY_ACT]
        bank_links = [each for each in links if each.slug.startswith(BANK_ACTS)]
        payout_links = [each for each in links if each.slug in PAYOUT_SLUGS]
        nightly_links = [each for each in links if each.slug in NIGHTLY_SLUGS]
        placed = (*key_links, *bank_links, *payout_links, *nightly_links)
        agreed = list(_banks(row, with_connection=may("merchants.view_bankconnection")))
        return {
            "top_links": [each for each in links if each not in placed],
            "key_links": key_links,
            "bank_links": bank_links,
            "steps": list(_steps(row, key_links, bank_links, now)),
            "keys": list(_keys(request, row, now)) if may("merchants.view_apikey") else None,
            "fees": fee_acts.shown(row) if may("payments.view_feeterms") else (),
            "banks": agreed,
            "parts_with_acts": [
                (each["connection"]._meta.label_lower, str(each["connection"].pk))
                for each in agreed
                if "connection" in each
            ],
            "balance": ledger.balance(row.pk) if may("ledger.view_account") else None,
            "endpoints": _endpoints(row) if may("webhooks.view_endpoint") else None,
            "payouts": _payouts(row, payout_links) if may("approvals.view_payoutaccount") else None,
            "nightly": nightly(row) if may("withdrawals.view_payoutnight") else None,
            "nightly_links": nightly_links,
            "lists": list(_lists(request, row)),
        }


def _steps(
    merchant: Merchant, key_links: Sequence[ActLink], bank_links: Sequence[ActLink], now: datetime
) -> Iterator[Step]:
    if merchant.moved_at is not None:
        yield Step(_("It has moved: another instance has its books, and nothing changes here."), [])
    elif merchant.suspended_at is not None:
        yield Step(_("It is suspended. Only money that arrives is credited."), [])
    if merchant.mode == Mode.LIVE and not merchant.bank:
        yield Step(_("It is not connected to a bank, so it cannot make codes."), bank_links)
    if merchant.uses_standby:
        words = {"bank": banks.title(merchant.bank), "standby": banks.title(merchant.standby_bank)}
        text = _("%(bank)s does not answer: new codes go to %(standby)s until it answers again.")
        yield Step(capfirst(text % words), [each for each in bank_links if each.slug == "test-connection"])
    if not any(each.is_usable(now) for each in _newest_keys(merchant)):
        yield Step(_("It has no valid key, so its system cannot call the API."), key_links)
    if not Endpoint.objects.of(merchant).filter(status=EndpointStatus.ACTIVE).exists():
        docs = ActLink(gettext_lazy("API reference"), "/docs", is_dangerous=False)
        yield Step(
            _(
                "It has no webhook, so its system is not told about payments. The system registers its "
                "address with its key, by POST /v1/webhooks."
            ),
            [docs],
        )


def _newest_keys(merchant: Merchant) -> Iterable[ApiKey]:
    """Keys that were not revoked come first."""
    return merchant.keys.order_by(F("revoked_at").desc(nulls_first=True), "-created_at")[:MAX_ROWS]


def _keys(request: HttpRequest, merchant: Merchant, now: datetime) -> Iterator[dict[str, Any]]:
    pages: Any = admin.site.get_model_admin(ApiKey)
    for key in _newest_keys(merchant):
        scopes = _("all") if key.scopes == list(Scope.values) else ", ".join(key.scopes)
        links = pages.act_links(request, key)
        yield {"key": key, "state": _state(key, now), "scopes": scopes, "links": links}


def _state(key: ApiKey, now: datetime) -> SafeString:
    if key.revoked_at is not None:
        return admin_columns.badge("disabled", _("revoked"))
    if not key.is_usable(now):
        return admin_columns.badge("expired", _("expired"))
    return admin_columns.badge("active", _("active"))


def _banks(merchant: Merchant, *, with_connection: bool) -> Iterator[dict[str, Any]]:
    """The agreement with each bank, without secrets. A test merchant has no connection."""
    connections = {}
    if with_connection:
        connections = {each.bank: each for each in BankConnection.objects.filter(merchant=merchant)}
    for terms in merchant.all_terms:
        shown = {"terms": terms, "has_new_codes": terms == merchant.new_terms}
        if (connection := connections.get(terms.bank)) is not None:
            connection.merchant = merchant
            adapter = banks.LIVE_BANKS[connection.bank]
            shown |= {
                "connection": connection,
                "title": _(adapter.title),
                "authentication": _(adapter.authentication_note),
                "credentials": bank_connections.described_credentials(connection),
                "callers": ", ".join(connection.callers) or _("any"),
            }
        yield shown


def _endpoints(merchant: Merchant) -> list[tuple[Endpoint, str]]:
    """With their states."""
    newest = Endpoint.objects.of(merchant).select_related("health").order_by("-created_at", "-id")
    return [(endpoint, describe_state(endpoint)) for endpoint in newest[:MAX_ROWS]]


def _payouts(merchant: Merchant, links: Sequence[ActLink]) -> dict[str, Any]:
    accounts = PayoutAccount.objects.filter(merchant=merchant, removed_at=None).order_by("-added_at", "-id")
    is_restricted = payout_accounts.is_restricted(merchant.pk)
    return {"is_restricted": is_restricted, "accounts": accounts[:MAX_ROWS], "links": links}


def nightly(merchant: Merchant) -> dict[str, Any]:
    """The schedule, if it is on, and the newest nights with their withdrawals."""
    schedules = PayoutSchedule.objects.filter(pk=merchant.pk, due_at__isnull=False).select_related("account")
    nights = list(PayoutNight.objects.filter(merchant=merchant).order_by("-day")[:MAX_NIGHTS])
    made = Withdrawal.objects.filter(merchant=merchant, payout_night__in=[night.day for night in nights])
    found = list(made.order_by("id"))
    return {
        "schedule": schedules.first(),
        "nights": [
            (night, [each for each in found if each.payout_night == night.day], _skipped(night))
            for night in nights
        ],
        "needs_account": not PayoutAccount.objects.filter(merchant=merchant, removed_at=None).exists(),
    }


def _skipped(night: PayoutNight) -> SafeString:
    tone = "failed" if night.skip_reason in NEEDS_STAFF else ""
    return admin_columns.badge(tone, night.get_skip_reason_display())


def _lists(request: HttpRequest, merchant: Merchant) -> Iterator[tuple[Any, str]]:
    for label, model, parameter in LISTS:
        app_label, name = model.split(".")
        if request.user.has_perm(LIST_PERMISSIONS.get(model, f"{app_label}.view_{name}")):
            query = urlencode({parameter: merchant.pk})
            yield label, f"{reverse(f'admin:{app_label}_{name}_changelist')}?{query}"
