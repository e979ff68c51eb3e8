"""What an API key may do. Each operation of the merchant API declares which of these it needs."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Scope(TextChoices):
    PAYMENTS_READ = "payments:read", _("Read everything except webhook secrets and evidence")
    EVIDENCE_READ = "evidence:read", _("Read the evidence of payments, with the names and accounts of payers")
    PAYMENTS_WRITE = "payments:write", _("Create QR codes and charge cards")
    LINKS_WRITE = "links:write", _("Create and deactivate payment links")
    REFUNDS_WRITE = "refunds:write", _("Refund payments")
    EXCEPTIONS_WRITE = "exceptions:write", _("Accept or return money that does not fit")
    WITHDRAWALS_WRITE = "withdrawals:write", _("Withdraw money")
    WEBHOOKS_WRITE = "webhooks:write", _("Manage webhooks and read their secrets")
    DESTINATIONS_WRITE = "destinations:write", _("Send messages about events to LINE and by email")
