"""What the first page of the console says of the exceptions."""

from typing import Any

from django import template

from receipts.looking import may_look
from receipts.models import Waiting
from receipts.models.waiting import COUNTED

register = template.Library()


@register.inclusion_tag("admin/receipts/waiting/reminder.html", takes_context=True)
def exceptions_reminder(context: dict[str, Any]) -> dict[str, Any]:
    """How many wait, up to COUNTED, for whoever may see them."""
    if not may_look(context["request"]):
        return {}
    count = Waiting.objects.order_by()[:COUNTED].count()
    return {"count": count, "are_more": count >= COUNTED}
