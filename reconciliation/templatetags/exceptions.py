"""How the page of an exception shows values."""

from typing import Any

from django import template
from django.utils.html import format_html

from core import request_context
from core.console import personal_data
from core.thai import thaibanks
from reconciliation.exceptions import detail_page, explanations

register = template.Library()
register.filter("account_number", personal_data.account)
register.filter("actor_name", request_context.display_name)
register.filter("bank_label", thaibanks.label)
register.filter("charged", explanations.charged)
register.filter("link", detail_page.link_to)
register.filter("moment", detail_page.moment)
register.filter("person", personal_data.name)
register.filter("redacted", detail_page.redacted_message)
register.filter("status_label", detail_page.status_label)
register.filter("transaction_link", detail_page.transaction_link)


@register.simple_tag
def detail(label: str, value: Any) -> str:
    """A row of the table of details, unless it is empty."""
    if value in (None, ""):
        return ""
    return format_html('<tr><th scope="row">{}</th><td>{}</td></tr>', label, value)
