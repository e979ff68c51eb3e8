from typing import Any

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.translation import gettext, gettext_lazy as _

import banks
from audit_trail.act_pages import ActPages, ObjectAct
from audit_trail.acts import Act
from audit_trail.pages import ReadOnlyAdmin
from core import clock, request_context
from core.console import admin_columns, personal_data
from core.console.admin_columns import column
from transfers import safe_mode
from transfers.explanations import ANSWERS, PAUSE, RESUME
from transfers.models import OPEN_STATES, CircuitBreaker, SafeMode, Transfer, TransferEvent
from transfers.schedule import OVERDUE_AFTER

MAX_EVENTS_SHOWN = 50
PAUSE_ACTS = (
    ObjectAct(
        "pause", _("Pause all outgoing money"), Act.TRANSFERS_PAUSED, "transfers.pause_transfers",
        lambda _row: str(PAUSE),
        lambda _row, values, now: safe_mode.pause(reason=values["reason"], now=now),
        is_possible=lambda _row, now: not safe_mode.is_on(), is_dangerous=True, is_recorded_by_service=True,
    ),
)  # fmt: skip
SAFE_MODE_ACTS = (
    ObjectAct(
        "resume", _("Resume outgoing money"), Act.TRANSFERS_RESUMED, "transfers.resume_transfers",
        lambda _period: str(RESUME).format(count=safe_mode.waiting_orders()),
        lambda _period, values, now: safe_mode.resume(reason=values["reason"], now=now),
        is_possible=lambda period, now: period.ended_at is None, is_dangerous=True,
        is_recorded_by_service=True,
    ),
)  # fmt: skip


class OverdueFilter(admin.SimpleListFilter):
    """Transfers that take so long that staff should ask the bank."""

    title, parameter_name = _("result"), "result"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("overdue", gettext("overdue"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.open_since(clock.now() - OVERDUE_AFTER) if self.value() else queryset


class TransferAdmin(ReadOnlyAdmin):
    """The list and pages of transfers. `reconciliation.admin` adds the actions and registers it."""

    shows_personal_data = True

    mode_column = "route"
    list_display = ["id", "purpose", "route_name", "baht", "state", "inquiries", "open_for", "created_at"]
    export_columns = ("id", "purpose", "route", "amount", "state", "inquiries", "created_at")
    list_filter = [OverdueFilter, "state", "purpose", "route"]
    search_fields = ["=id", "=bank_reference"]
    indexed_filters = frozenset({"result"})

    route_name = column(_("route"), lambda transfer: capfirst(banks.title(transfer.route.partition(":")[2])))
    account_masked = column(_("account"), lambda transfer: personal_data.account(transfer.account or None))

    @admin.display(description=_("open for"))
    def open_for(self, transfer: Transfer) -> str | None:
        return timesince(transfer.created_at, clock.now()) if transfer.state in OPEN_STATES else None

    @admin.display(description=_("history"))
    def history(self, transfer: Transfer) -> SafeString:
        newest = transfer.events.order_by("-created_at", "-pk")[:MAX_EVENTS_SHOWN]
        lines = (
            (
                clock.display(each.created_at),
                each.get_type_display(),
                ANSWERS.get(each.answer, each.answer),
                request_context.display_name(each.actor),
            )
            for each in newest
        )
        return format_html_join("", "<div>{} {} {} {}</div>", lines)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        is_open = obj is None or obj.state in OPEN_STATES
        hidden = ("id", "route", "lease_until") if is_open else ("id", "route", "lease_until", "due_at")
        plain = [name for name in admin_columns.readable_fields(Transfer) if name not in hidden]
        return ["route_name", *plain, "account_masked", "history"]


@admin.register(TransferEvent)
class TransferEventAdmin(ReadOnlyAdmin):
    list_display = ["transfer_id", "type", "answer", "actor", "request_id", "created_at"]
    list_filter = ["type"]
    search_fields = ["=transfer__id"]
    ordering = ["-id"]


@admin.register(CircuitBreaker)
class CircuitBreakerAdmin(ReadOnlyAdmin):
    mode_column = "route"
    list_display = ["route", "merchant_id", "failures", "openings", "first_failed_at", "open_until"]


@admin.register(SafeMode)
class SafeModeAdmin(ActPages, ReadOnlyAdmin):
    list_display = ["cause", "started_at", "ended_at", "ended_by"]
    ordering = ["-id"]
    object_acts = SAFE_MODE_ACTS
    list_acts = PAUSE_ACTS
