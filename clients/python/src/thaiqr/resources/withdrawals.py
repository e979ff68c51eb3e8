"""Money from the balance to a bank account."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path, post
from thaiqr.choices import WithdrawalStatus
from thaiqr.decoding import reader
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

WITHDRAWAL = reader(models.Withdrawal)


class Withdrawals(Resource[Mode]):
    """`client.withdrawals`: money from the balance to a bank account."""

    @operation
    def create(
        self,
        *,
        amount: int,
        bank_code: str,
        bank_account: str,
        account_name: str,
        currency: str = "THB",
        reference: str | None = None,
        metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Withdrawal]:
        """Send `amount` satang to an account. `bank_code`: three digits or a short name such as SCB."""
        return post(
            "/v1/withdrawals",
            WITHDRAWAL,
            idempotency_key,
            amount=amount,
            currency=currency,
            bank_code=bank_code,
            bank_account=bank_account,
            account_name=account_name,
            reference=reference,
            metadata=metadata,
        )

    @operation
    def get(self, withdrawal_id: str) -> Call[models.Withdrawal]:
        """Read a withdrawal."""
        return get(path("/v1/withdrawals/{withdrawal_id}", withdrawal_id=withdrawal_id), WITHDRAWAL)

    @listing
    def list(
        self,
        *,
        status: WithdrawalStatus | None = None,
        reference: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Withdrawal]:
        """List withdrawals, the newest first."""
        query = list_query(
            page_size,
            status=status,
            reference=reference,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/withdrawals", "withdrawals", WITHDRAWAL, query, by_cursor("withdrawal_id"))

    @operation
    def cancel(self, withdrawal_id: str, *, idempotency_key: str | None = None) -> Call[models.Withdrawal]:
        """Cancel a pending withdrawal."""
        where = path("/v1/withdrawals/{withdrawal_id}/cancel", withdrawal_id=withdrawal_id)
        return post(where, WITHDRAWAL, idempotency_key)
