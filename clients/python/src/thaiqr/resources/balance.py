"""The balance, and what changed it."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation
from thaiqr.choices import BalanceTransactionType
from thaiqr.decoding import reader
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

BALANCE = reader(models.Balance)


class Balance(Resource[Mode]):
    """`client.balance`: what is available, and what changed it."""

    @operation
    def get(self, *, at: Instant | None = None, timezone: str | None = None) -> Call[models.Balance]:
        """Read the balance, now or as it was `at` a time."""
        return get("/v1/balance", BALANCE, at=at, timezone=timezone)

    @listing
    def transactions(
        self,
        *,
        type: BalanceTransactionType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.BalanceTransaction]:
        """List what changed the balance, the newest first."""
        return Listing(
            "/v1/balance/transactions",
            "balance_transactions",
            reader(models.BalanceTransaction),
            list_query(
                page_size,
                type=type,
                start_date=start_date,
                end_date=end_date,
                timezone=timezone,
                after=after,
            ),
            by_cursor("balance_transaction_id"),
        )
