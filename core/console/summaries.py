"""The sentence with which a page of the console begins."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.functional import Promise


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
