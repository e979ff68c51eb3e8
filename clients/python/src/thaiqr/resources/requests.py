"""The log of a merchant's own requests."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path
from thaiqr.choices import Method, StatusClass
from thaiqr.decoding import reader
from thaiqr.paging import PAGE_SIZE, Listing, by_next_after


class Requests(Resource[Mode]):
    """`client.requests`: the log of your own requests of the last 30 days."""

    @operation
    def get(self, request_id: str) -> Call[models.FullLoggedRequest]:
        """Read a request with its redacted bodies, by the X-Request-Id of its answer."""
        where = path("/v1/requests/{request_id}", request_id=request_id)
        return get(where, reader(models.FullLoggedRequest))

    @listing
    def list(
        self,
        *,
        status: StatusClass | None = None,
        method: Method | None = None,
        route: str | None = None,
        key: str | None = None,
        request_id: str | None = None,
        payment_id: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.LoggedRequest]:
        """List requests, the newest first."""
        query = list_query(
            page_size,
            status=status,
            method=method,
            route=route,
            key=key,
            request_id=request_id,
            payment_id=payment_id,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/requests", "requests", reader(models.LoggedRequest), query, by_next_after)
