"""Template filters of the console."""

from django import template

from core import failures, money
from core.console import admin_columns

register = template.Library()
register.filter("baht", money.display)
register.filter("state", admin_columns.badge)
register.filter("copyable", admin_columns.copyable)
register.filter("reason", failures.words)


@register.filter
def account(code: str) -> str:
    """A ledger account with a short id: "available:mch_…7Yc2Qd"."""
    kind, _, owner = code.partition(":")
    return f"{kind}:{admin_columns.short_id(owner)}" if owner else code


@register.filter
def percent(share: float | None) -> str:
    """A share from 0 to 1 as a text: 0.9812 is "98.1 %", and None "-"."""
    return "-" if share is None else f"{100 * share:.1f} %"
