"""The sentence with which a page begins: how something stands, and what to do next."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from approvals.models import Approval


@dataclass(frozen=True, slots=True)
class Summary:
    """The sentence, its colour, and a link to what is to do, if anything.

    permission: what a reader needs for the page of the link, if less than all readers have it.
    """

    text: str
    tone: str
    url: str = ""
    link: str = ""
    permission: str = ""


def context(request: HttpRequest, summary: Summary) -> dict[str, Any]:
    """What `admin/lead.html` shows."""
    may_follow = not summary.permission or request.user.has_perm(summary.permission)
    return {"summary": summary, "may_follow": may_follow}


def for_approval(text: str, approval_id: str) -> Summary:
    """The sentence about something that waits for a second person."""
    url = page("approvals_approval", approval_id)
    return Summary(text, "wait", url, _("Approve or reject it"), "approvals.view_approval")


def waiting_approval(subject_id: str) -> Approval | None:
    """The approval that this refund, withdrawal or order waits for."""
    return Approval.objects.waiting().filter(subject_id=subject_id).first()


def page(model: str, key: str) -> str:
    return reverse(f"admin:{model}_change", args=[quote(key)])


def at(instant: datetime | None) -> str:
    """In Bangkok time."""
    return "-" if instant is None else f"{localtime(instant):%Y-%m-%d %H:%M:%S}"


def soon(instant: datetime, now: datetime) -> str:
    """The time alone if it is today."""
    is_today = localtime(instant).date() == localtime(now).date()
    return f"{localtime(instant):%H:%M:%S}" if is_today else at(instant)
