"""The timeline in the OpenAPI document."""

import json
from pathlib import Path
from typing import Annotated

from core.objects import one_of
from core.openapi import Answer, Operation, Tag
from core.paging import Page, PageQuery
from core.scopes import Scope
from payments.errors import PaymentNotFound
from reconciliation.models import ReportSource
from timeline.shapes import TimelineEntry


class Timeline(Page):
    """A page of a timeline."""

    timeline: list[TimelineEntry]
    sources: Annotated[
        list[Annotated[str, one_of(ReportSource)]],
        "How the bank reported the money that paid, or else the money that did not fit.",
    ]


TIMELINE = json.loads(Path(__file__).with_name("example.json").read_text())

list_ = Operation(
    name="get_payment_timeline",
    tag=Tag.PAYMENTS,
    scope=Scope.PAYMENTS_READ,
    summary="What happened to a payment",
    description="All entries, newest first: inquiries to the bank or the card's acquirer, their reports and "
    "results, also of money that came twice, late or in another amount, and the decisions about it; open "
    "money of the same amount with an unknown reference; refunds with their orders and inquiries; attempts, "
    "redeliveries and held deliveries of your webhooks. Each entry names its actor and request.",
    query=PageQuery,
    response=Answer(Timeline, TIMELINE),
    errors=(PaymentNotFound,),
)
