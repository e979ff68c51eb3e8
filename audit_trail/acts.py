"""What staff can do: the closed list of acts in the audit trail."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Act(models.TextChoices):
    """An act of staff, with the label that pages show. The object of a record says what it was done to."""

    VIEWED = "viewed", _("Viewed personal data")
    SEARCHED = "searched", _("Searched by a name or an account")
    EXPORTED = "exported", _("Exported to a file")
    ERASED = "erased", _("Erased personal data of a payer")
    ADDED = "added", _("Added")
    CHANGED = "changed", _("Changed")
    DELETED = "deleted", _("Deleted")
    NOTED = "noted", _("Wrote a note")
    HANDED_OVER = "handed_over", _("Handed it over")
    ANSWERED = "answered", _("Answered a hand-over")
    APPROVED = "approved", _("Approved")
    REJECTED = "rejected", _("Rejected")
    REFUND_CREATED = "refund_created", _("Refunded the payment")
    CODE_EXPIRED = "code_expired", _("Expired the QR code")
    LINK_CREATED = "link_created", _("Made the payment link")
    LINK_DEACTIVATED = "link_deactivated", _("Deactivated the payment link")
    DELIVERY_RESENT = "delivery_resent", _("Sent the event again")
    REFUND_CANCELED = "refund_canceled", _("Canceled the refund")
    CLAIM_LINK_REVOKED = "claim_link_revoked", _("Revoked the claim link")
    WITHDRAWAL_CREATED = "withdrawal_created", _("Created the withdrawal")
    WITHDRAWAL_CANCELED = "withdrawal_canceled", _("Canceled the withdrawal")
    TRANSFER_CANCELED = "transfer_canceled", _("Canceled the transfer")
    TRANSFER_COMPLETED = "transfer_completed", _("Completed the transfer")
    TRANSFERS_PAUSED = "transfers_paused", _("Paused all outgoing money")
    TRANSFERS_RESUMED = "transfers_resumed", _("Resumed outgoing money")
    LOST_ORDER_RECORDED = "lost_order_recorded", _("Recorded an order that a restore lost")
    COMPLETION_REQUESTED = "completion_requested", _("Requested to complete the transfer")
    EXCEPTION_RESOLVED = "exception_resolved", _("Resolved the exception")
    STATEMENT_IMPORTED = "statement_imported", _("Imported the statement")
    BANK_ASKED = "bank_asked", _("Asked the bank about a slip")
    ENDPOINT_DISABLED = "endpoint_disabled", _("Disabled the webhook")
    ENDPOINT_ENABLED = "endpoint_enabled", _("Enabled the webhook")
    PAUSE_SKIPPED = "pause_skipped", _("Skipped the pause of the webhook")
    ENDPOINT_TESTED = "endpoint_tested", _("Sent a test event")
    ENDPOINT_ADDED = "endpoint_added", _("Added a webhook, or a destination of messages")
    ENDPOINT_CHANGED = "endpoint_changed", _("Changed the webhook")
    ENDPOINT_DELETED = "endpoint_deleted", _("Deleted the webhook, or the destination of messages")
    DELIVERIES_REPLAYED = "deliveries_replayed", _("Replayed held deliveries")
    MERCHANT_CREATED = "merchant_created", _("Created the merchant")
    MERCHANT_SUSPENDED = "merchant_suspended", _("Suspended the merchant")
    SUSPENSION_LIFTED = "suspension_lifted", _("Lifted the suspension of the merchant")
    MERCHANT_RENAMED = "merchant_renamed", _("Renamed the merchant")
    TAX_DETAILS_SET = "tax_details_set", _("Set the tax details")
    BANK_CONNECTED = "bank_connected", _("Connected the bank")
    CONNECTION_TESTED = "connection_tested", _("Tested the connection to the bank")
    LATE_MONEY_CHANGED = "late_money_changed", _("Changed what happens to late money")
    UNSETTLED_CHANGED = "unsettled_changed", _("Changed whether money can leave before settlement")
    QUESTION_CLOSED = "question_closed", _("Closed a question about a settlement")
    MONTH_CLOSED = "month_closed", _("Closed the month")
    FEES_SET = "fees_set", _("Set what the bank takes for payments")
    OPEN_REFERENCES_CHANGED = "open_references_changed", _("Changed how many open codes a reference can have")
    PAGE_ORIGINS_CHANGED = "page_origins_changed", _("Changed the sites of the payment page")
    PAGE_SETTINGS_CHANGED = "page_settings_changed", _("Changed how the payment page shows the shop")
    KEY_ISSUED = "key_issued", _("Issued a key")
    KEY_ROLLED = "key_rolled", _("Rolled the key")
    KEY_REVOKED = "key_revoked", _("Revoked the key")
    PAYOUT_ACCOUNT_ADDED = "payout_account_added", _("Added a payout account")
    PAYOUT_ACCOUNT_REMOVED = "payout_account_removed", _("Removed the payout account")
    PAYOUT_LIST_SWITCHED = "payout_list_switched", _("Switched the list of payout accounts")
    PAYOUT_SCHEDULE_CHANGED = "payout_schedule_changed", _("Changed the nightly payout")
    PASSWORD_CHANGED = "password_changed", _("Changed the own password")
    SECOND_FACTOR_ADDED = "second_factor_added", _("Set up the own second factor")
    SECOND_FACTOR_REMOVED = "second_factor_removed", _("Removed the own second factor")
    SECOND_FACTOR_RESET = "second_factor_reset", _("Reset the second factor")
    PASSKEY_ADDED = "passkey_added", _("Added a passkey")
    PASSKEY_REMOVED = "passkey_removed", _("Removed a passkey")
    COMPANY_CONNECTED = "company_connected", _("Connected the login of the company")
    COMPANY_DISCONNECTED = "company_disconnected", _("Disconnected the login of the company")
    RECOVERY_CODES_RENEWED = "recovery_codes_renewed", _("Made new recovery codes")
    INVITED = "invited", _("Invited the colleague")
    MEMBERSHIP_ENDED = "membership_ended", _("Ended what the person may do for the merchant")
    SHOP_VIEWED = "shop_viewed", _("Looked at the shop")
    INVITATION_ACCEPTED = "invitation_accepted", _("Accepted the invitation")
    SESSIONS_ENDED = "sessions_ended", _("Ended sessions")
    LOCKOUT_LIFTED = "lockout_lifted", _("Lifted the lockout")


class ActRefused(Exception):
    """The act is not possible. The text tells staff why. Nothing changed."""


def choices() -> list[tuple[str, str]]:
    """The acts as choices of a column. A migration has the name of this function, so a new act needs none."""
    return [(str(value), str(label)) for value, label in Act.choices]
