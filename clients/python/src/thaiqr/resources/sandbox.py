"""What test keys can make happen at the simulated bank."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, delete, get, operation, post
from thaiqr.choices import Scenario
from thaiqr.decoding import reader


class Sandbox(Resource[Mode]):
    """`client.sandbox`: what test keys can make happen at the simulated bank."""

    @operation
    def pay(
        self,
        *,
        qr_data: str,
        scenario: Scenario = "paid",
        paid_at: Instant | None = None,
        report_at: Instant | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.SandboxPayment]:
        """Pay a code as the customer would."""
        return post(
            "/sandbox/v1/payments",
            reader(models.SandboxPayment),
            idempotency_key,
            qr_data=qr_data,
            scenario=scenario,
            paid_at=paid_at,
            report_at=report_at,
        )

    @operation
    def get_clock(self) -> Call[models.SandboxClock]:
        """Read how far the time of this merchant was advanced."""
        return get("/sandbox/v1/clock", reader(models.SandboxClock))

    @operation
    def advance_clock(
        self,
        *,
        advance_minutes: int | None = None,
        advance_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.AdvancedSandboxClock]:
        """Bring what waits nearer: expiry, retries, refunds, reports of the bank. Give one of the two."""
        return post(
            "/sandbox/v1/clock",
            reader(models.AdvancedSandboxClock),
            idempotency_key,
            advance_minutes=advance_minutes,
            advance_seconds=advance_seconds,
        )

    @operation
    def reset_clock(self) -> Call[None]:
        """Start the clock anew."""
        return delete("/sandbox/v1/clock")
