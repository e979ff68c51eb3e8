"""Template tags of exceptions: the reminder on the first page of the console, and names of actors."""

from typing import Any

from django import template

from core import admin_lists, request_context
from reconciliation.exceptions.actions import may_view_exceptions
from reconciliation.models import ReconciliationException

register = template.Library()
register.filter("actor_name", request_context.display_name)


@register.inclusion_tag("admin/reconciliation/reconciliationexception/reminder.html", takes_context=True)
def exceptions_reminder(context: dict[str, Any]) -> dict[str, Any]:
    """The number of open exceptions, counted up to MAX_COUNTED, for staff who may see them."""
    if not may_view_exceptions(context["request"]):
        return {}
    count = ReconciliationException.objects.order_by()[: admin_lists.MAX_COUNTED].count()
    return {"count": count, "are_more": count >= admin_lists.MAX_COUNTED}
