"""What acquirers transfer for card payments."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path
from thaiqr.decoding import reader
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

SETTLEMENT = reader(models.Settlement)


class Settlements(Resource[Mode]):
    """`client.settlements`: what acquirers transfer for your card payments."""

    @operation
    def get(self, settlement_id: str) -> Call[models.Settlement]:
        """Read a settlement. List its payments by `client.payments.list(settlement_id=...)`."""
        return get(path("/v1/settlements/{settlement_id}", settlement_id=settlement_id), SETTLEMENT)

    @listing
    def list(
        self,
        *,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Settlement]:
        """List settlements, the newest first."""
        query = list_query(
            page_size, start_date=start_date, end_date=end_date, timezone=timezone, after=after
        )
        return Listing("/v1/settlements", "settlements", SETTLEMENT, query, by_cursor("settlement_id"))
