"""Acts of staff on the pages of the console, and what the audit trail has about them."""

from typing import Any
from uuid import uuid4

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from audit_trail.acts import Act
from audit_trail.models import AuditRecord

REASON = "The customer called."


def acts_of_staff() -> Any:
    """The records of acts in the console, without views of pages."""
    return AuditRecord.objects.filter(actor__startswith="staff:").exclude(act=Act.VIEWED).order_by("id")


def act_form(**values: Any) -> dict[str, Any]:
    """What staff send with the page of an act."""
    return {"reason": REASON, "token": str(uuid4()), **values}


def send_act(client: Client, model: type[Model], key: Any, slug: str, **values: Any) -> HttpResponse:
    """Send the form of an act on a row, and follow to the next page."""
    page = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_act", args=[quote(key), slug])
    answer: Any = client.post(page, act_form(**values), follow=True)
    return answer  # type: ignore[no-any-return]


def run_act(client: Client, model: type[Model], key: Any, slug: str, **values: Any) -> str:
    """`send_act`, and the text of the page."""
    answer = send_act(client, model, key, slug, **values)
    assert answer.status_code == 200
    return answer.content.decode()
