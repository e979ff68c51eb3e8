"""The timeline in the OpenAPI document."""

from typing import Annotated

from core.http.objects import one_of
from core.http.openapi import Tag, described
from core.http.paging import Page, PageQuery
from core.http.scopes import Scope
from reconciliation.models import ReportSource
from timeline.shapes import TimelineEntry


class Timeline(Page):
    """A page of a timeline."""

    timeline: list[TimelineEntry]
    sources: Annotated[
        list[Annotated[str, one_of(ReportSource)]],
        "How the bank reported the money that paid, or else the money that did not fit.",
    ]


list_ = described(
    __file__,
    "get_payment_timeline",
    tag=Tag.PAYMENTS,
    scope=Scope.PAYMENTS_READ,
    query=PageQuery,
    response=Timeline,
)
