"""The history of payments and refunds."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path
from thaiqr.choices import TransactionStatus, TransactionType
from thaiqr.decoding import reader
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor


class Transactions(Resource[Mode]):
    """`client.transactions`: the history of payments and refunds."""

    @operation
    def get(self, transaction_id: str) -> Call[models.Transaction]:
        """Read a transaction."""
        where = path("/v1/transactions/{transaction_id}", transaction_id=transaction_id)
        return get(where, reader(models.Transaction))

    @listing
    def list(
        self,
        *,
        status: TransactionStatus | None = None,
        type: TransactionType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Transaction]:
        """List transactions, the newest first."""
        return Listing(
            "/v1/transactions",
            "transactions",
            reader(models.Transaction),
            list_query(
                page_size,
                status=status,
                type=type,
                start_date=start_date,
                end_date=end_date,
                timezone=timezone,
                after=after,
            ),
            by_cursor("transaction_id"),
        )
