"""The sandbox bank's doors for the service itself: order a payment, and ask what became of it."""

from rest_framework.request import Request

from core import clock
from core.http import Answer
from sandbox import openapi as docs
from sandbox import orders, shapes
from sandbox.signed import SignedViewSet


class OrderViewSet(SignedViewSet):
    """Orders of refunds and withdrawals."""

    @docs.order
    def create(self, request: Request) -> Answer:
        asked, now = orders.read(dict(request.data)), clock.now()
        answer = Answer.of(shapes.order_at(orders.take(asked, now=now), now))
        if asked.scenario.is_answer_cut:
            return Answer(answer.status, answer.body[: len(answer.body) // 2])
        return answer

    @docs.inquire
    def retrieve(self, request: Request, reference: str) -> Answer:
        return Answer.of(shapes.order_at(orders.find(reference), clock.now()))
