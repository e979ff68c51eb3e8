"""Doors to the sandbox bank's books."""

from rest_framework.request import Request

from core import api, clock
from core.http import Answer
from sandbox import books, shapes
from sandbox import openapi as docs
from sandbox.serializers import BookQuery
from sandbox.signed import SignedViewSet

QUERY = BookQuery()


class BookViewSet(SignedViewSet):
    """What happened to a code."""

    @docs.transactions
    def list(self, request: Request) -> Answer:
        found = books.about(**api.read_query(QUERY, request), now=clock.now())
        return Answer.of({"transactions": [shapes.entry_object(entry) for entry in found]})
