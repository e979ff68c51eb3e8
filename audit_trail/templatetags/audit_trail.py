"""The block *What staff did* on the pages of objects."""

from typing import Any

from django import template
from django.urls import reverse
from django.utils.http import urlencode

from audit_trail import presentation

register = template.Library()


@register.inclusion_tag("admin/staff_acts.html", takes_context=True)
def staff_acts(context: Any, object_type: str, object_id: Any) -> dict[str, Any]:
    """Show the newest acts on an object, and a link to all of them."""
    records = presentation.acts_on(object_type, str(object_id))
    may_search = context["request"].user.has_perm("audit_trail.view_auditrecord")
    url = f"{reverse('admin:audit_trail_auditrecord_changelist')}?{urlencode({'q': object_id})}"
    return {
        "acts": [(each, presentation.who(each), presentation.changes(each)) for each in records],
        "all_url": url if may_search else None,
    }
