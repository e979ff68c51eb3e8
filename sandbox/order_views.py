"""The sandbox bank's doors for the service itself: order a payment, and ask what became of it."""

from typing import Any

from rest_framework.request import Request

from core import clock
from core.api import ApiViewSet
from core.http import Answer
from sandbox import openapi as docs
from sandbox import orders, shapes, signatures
from sandbox.views import check_open


class OrderViewSet(ApiViewSet):
    """Open to whoever knows the secret that the bank and the service share."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_open()
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        signatures.verify(
            request.headers,
            method=str(request.method),
            path=request.get_full_path(),
            body=request._request.body,
            now=clock.now(),
        )

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
