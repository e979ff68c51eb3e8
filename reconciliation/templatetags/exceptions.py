"""What the first page of the console says of the exceptions."""

from typing import Any

from django import template

from core import request_context
from reconciliation.exceptions.actions import may_view_exceptions
from reconciliation.models import MAX_COUNTED, ReconciliationException

register = template.Library()
register.filter("actor_name", request_context.display_name)


@register.inclusion_tag("admin/reconciliation/reconciliationexception/reminder.html", takes_context=True)
def exceptions_reminder(context: dict[str, Any]) -> dict[str, Any]:
    """How many wait, up to COUNTED, for whoever may see them."""
    if not may_view_exceptions(context["request"]):
        return {}
    count = ReconciliationException.objects.order_by()[:MAX_COUNTED].count()
    return {"count": count, "are_more": count >= MAX_COUNTED}
