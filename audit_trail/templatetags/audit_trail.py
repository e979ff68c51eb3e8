"""The blocks *What staff did* on the pages of objects, and *What this person did* on that of a person."""

from typing import Any

from django import template
from django.urls import reverse
from django.utils.http import urlencode

from audit_trail import presentation

register = template.Library()


@register.inclusion_tag("admin/staff_acts.html", takes_context=True)
def staff_acts(context: Any, object_type: str, object_id: Any) -> dict[str, Any]:
    """Show the newest acts on an object and the parts that its page names, and a link to all of them."""
    records = presentation.acts_on(object_type, str(object_id), context.get("parts_with_acts", ()))
    acts = [(each, presentation.who(each), presentation.changes(each)) for each in records]
    return {"acts": acts, "all_url": _search_url(context, object_id)}


@register.inclusion_tag("admin/acts_of.html", takes_context=True)
def acts_of(context: Any, actor: str) -> dict[str, Any]:
    """Show the newest acts of a person, for readers of the audit trail."""
    all_url = _search_url(context, actor)
    records = presentation.acts_of(actor) if all_url else []
    named = zip(records, presentation.object_names(records), strict=True)
    acts = [(each, name, presentation.page_of(each)) for each, name in named]
    return {"acts": acts, "all_url": all_url}


def _search_url(context: Any, text: Any) -> str | None:
    if not context["request"].user.has_perm("audit_trail.view_auditrecord"):
        return None
    return f"{reverse('admin:audit_trail_auditrecord_changelist')}?{urlencode({'q': text})}"
