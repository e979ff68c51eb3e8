"""`/sandbox/v1/clock`: a test merchant advances its time."""

from django.http import HttpResponse
from rest_framework.request import Request

from core import clock
from core.http import api, rate_limits
from core.http.rate_limits import RateLimit
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import merchant_of
from sandbox.views import SandboxViewSet
from testclock import openapi as docs, services
from testclock.errors import AdvancedTooOften, NotOneAdvance
from testclock.shapes import AdvancedClockObject, ClockObject, clock_object

# Of one merchant: an advance can lock thousands of its rows.
RATE = RateLimit(per_second=1, burst=10)


class ClockViewSet(SandboxViewSet):
    @docs.advance
    @idempotent
    def advance(self, request: Request) -> Job:
        given = api.read_body(docs.advance, request)
        if len(given) != 1:
            raise NotOneAdvance(param="advance_seconds")
        seconds = given.get("advance_seconds", 60 * given.get("advance_minutes", 0))
        merchant, now = merchant_of(request), clock.now()
        rate_limits.check(f"test-clock:{merchant.id}", RATE, AdvancedTooOften)

        def work() -> AdvancedClockObject:
            row, moved = services.advance(merchant=merchant, seconds=seconds, now=now)
            return {**clock_object(row), "moved": moved}

        return work

    @docs.retrieve
    def retrieve(self, request: Request) -> ClockObject:
        return clock_object(services.find(merchant_of(request)))

    @docs.reset
    def reset(self, request: Request) -> HttpResponse:
        services.reset(merchant=merchant_of(request))
        return HttpResponse(status=204)
