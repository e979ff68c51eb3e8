"""Where banks knock. The sender is proven by what that bank offers, not by a merchant's key."""

from rest_framework.request import Request

import banks
from core import clock
from core.api import ApiViewSet
from core.http import Answer
from receipts import inbox, orders, services
from receipts import openapi as docs


class NoticeViewSet(ApiViewSet):
    """A bank's callback: stored in one commit, applied in the next, answered."""

    parser_classes = []  # the raw bytes are what was signed, and what is kept

    @docs.create
    def create(self, request: Request, bank: str) -> Answer:
        adapter, body, now = banks.get(bank), request._request.body, clock.now()
        adapter.verify(headers=request.headers, body=body, now=now)
        try:
            notice = adapter.parse_notice(body)
        except banks.Unreadable:
            inbox.park(bank=bank, body=body, now=now)
            return Answer.of(adapter.answer(None))
        if isinstance(notice, banks.OrderNotice):
            orders.accept(bank=bank, body=body, notice=notice, now=now)
        else:
            receipt = inbox.accept(bank=bank, body=body, notice=notice, now=now)
            services.try_to_apply(receipt_id=receipt.id, now=clock.now())
        return Answer.of(adapter.answer(notice))
