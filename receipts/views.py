"""Where banks knock. The sender is proven by what that bank offers, not by a merchant's key."""

from datetime import datetime

from rest_framework.request import Request

import banks
from core import addresses, clock, origin
from core.api import ApiViewSet
from core.http import Answer
from merchants import links
from receipts import confirmation_inquiries, inbox, orders, services
from receipts import openapi as docs


class NoticeViewSet(ApiViewSet):
    """A bank's callback: stored in one commit, applied in the next, answered."""

    parser_classes = []  # the raw bytes are what was signed, and what is kept

    @docs.create
    def create(self, request: Request, bank: str) -> Answer:
        return _take(bank, banks.get(bank), request)

    @docs.knock
    def knock(self, request: Request, bank: str, secret: str) -> Answer:
        link = links.by_door(bank, secret)
        links.admit(link, addresses.address_of(request._request))
        return _take(bank, banks.get(bank, links.opened(link)), request)


def _take(bank: str, adapter: banks.Bank, request: Request) -> Answer:
    body, now = request._request.body, clock.now()
    adapter.verify(headers=request.headers, body=body, now=now)
    origin.act_as(f"bank:{bank}")
    try:
        notice = adapter.parse_notice(body)
    except banks.Unreadable as unreadable:
        inbox.park(bank=bank, body=body, now=now)
        return Answer.of(unreadable.answer or adapter.answer(None))
    if not adapter.signs_callbacks:
        _keep_unsigned(bank, body, notice, now)
    elif isinstance(notice, banks.OrderNotice):
        orders.accept(bank=bank, body=body, notice=notice, now=now)
    else:
        receipt = inbox.accept(bank=bank, body=body, notice=notice, now=now)
        services.hear(receipt, now=clock.now())
    return Answer.of(adapter.answer(notice))


def _keep_unsigned(bank: str, body: bytes, notice: banks.Notice | banks.OrderNotice, now: datetime) -> None:
    """The bank is asked about money. What an unsigned message says of our orders is for staff."""
    if isinstance(notice, banks.OrderNotice):
        inbox.park(bank=bank, body=body, now=now)
    else:
        confirmation_inquiries.accept_unsigned(bank=bank, body=body, notice=notice, now=now)
