"""The sentence with which a page begins: how something stands, and what to do next."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.timezone import localtime

from core import clock


@dataclass(frozen=True, slots=True)
class Summary:
    """The sentence, its colour, and a link to what is to do, if anything.

    permission: what a reader needs for the page of the link, if less than all readers have it.
    """

    text: str | Promise
    tone: str
    url: str = ""
    link: str | Promise = ""
    permission: str = ""


def context(request: HttpRequest, summary: Summary) -> dict[str, Any]:
    """What `admin/lead.html` shows."""
    may_follow = not summary.permission or request.user.has_perm(summary.permission)
    return {"summary": summary, "may_follow": may_follow}


def page(model: str, key: str) -> str:
    return reverse(f"admin:{model}_change", args=[quote(key)])


def at(instant: datetime | None) -> str:
    """In Bangkok time."""
    return "-" if instant is None else clock.display(instant)


def soon(instant: datetime, now: datetime) -> str:
    """The time alone if it is today."""
    is_today = localtime(instant).date() == localtime(now).date()
    return f"{localtime(instant):%H:%M:%S}" if is_today else at(instant)
