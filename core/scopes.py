"""What an API key may do. Each operation of the merchant API declares which of these it needs."""

from django.db.models import TextChoices


class Scope(TextChoices):
    PAYMENTS_READ = "payments:read", "Read everything except webhook secrets"
    PAYMENTS_WRITE = "payments:write", "Create QR codes and charge cards"
    REFUNDS_WRITE = "refunds:write", "Refund payments"
    WITHDRAWALS_WRITE = "withdrawals:write", "Withdraw money"
    WEBHOOKS_WRITE = "webhooks:write", "Manage webhooks and read their secrets"
