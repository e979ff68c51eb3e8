"""Template filters of the console."""

from typing import Any

from django import template

from console import saved_filters as of
from core import admin_columns, money

register = template.Library()
register.filter("baht", money.display)
register.filter("state", admin_columns.badge)
register.filter("copyable", admin_columns.copyable)


@register.inclusion_tag("admin/saved_filters.html", takes_context=True)
def saved_filters(context: Any) -> dict[str, Any]:
    """The saved filters of the reader for a list, and the form that saves its present filters."""
    request, changes = context["request"], context["cl"]
    query = of.filters_of(request.GET.urlencode())
    label = changes.opts.label_lower
    return {
        "list": label,
        "saved": of.of_list(request.user, label),
        "query": query if changes.has_active_filters else "",
        "csrf_token": context.get("csrf_token"),
    }


@register.filter
def account(code: str) -> str:
    """A ledger account with a short id: "available:mch_…7Yc2Qd"."""
    kind, _, owner = code.partition(":")
    return f"{kind}:{admin_columns.short_id(owner)}" if owner else code


@register.filter
def percent(share: float | None) -> str:
    """A share from 0 to 1 as a text: 0.9812 is "98.1 %", and None "-"."""
    return "-" if share is None else f"{100 * share:.1f} %"
