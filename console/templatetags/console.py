"""Template filters of the console."""

from datetime import datetime

from django import template
from django.utils.text import capfirst
from django.utils.translation import gettext as _

import banks
from core import clock, failures, money
from core.console import admin_columns
from ledger import accounts
from ledger.models import AccountType

register = template.Library()
register.filter("baht", money.display)
register.filter("state", admin_columns.badge)
register.filter("copyable", admin_columns.copyable)
register.filter("reason", failures.words)


@register.filter
def account(code: str) -> str:
    """A ledger account in words: "Fees of Opn", or with a short id "Available, mch_…7Yc2Qd"."""
    kind, owner = accounts.type_of(code), code.partition(":")[2]
    words = {
        AccountType.BANK: _("At %(owner)s"),
        AccountType.ACQUIRER: _("Owed by %(owner)s"),
        AccountType.FEES: _("Fees of %(owner)s"),
        AccountType.FEE_VAT: _("VAT of the fees of %(owner)s"),
        AccountType.SUSPENSE: _("Suspense of %(owner)s"),
    }
    if not owner:
        return _(str(kind.label))
    if kind in words:
        return words[kind] % {"owner": banks.title(owner)}
    return f"{_(str(kind.label))}, {admin_columns.short_id(owner)}"


@register.filter
def age(since: datetime) -> str:
    """How long ago: "3 hours"."""
    return str(capfirst(clock.format_duration(clock.now() - since)))


@register.filter
def percent(share: float | None) -> str:
    """A share from 0 to 1 as a text: 0.9812 is "98.1 %", and None "-"."""
    return "-" if share is None else f"{100 * share:.1f} %"
