"""Sentences that only the timeline says. Those of an app that others say too are in the app's own module."""

from django.utils.translation import gettext_lazy as _

from approvals.models import ApprovalStatus

# Reports of banks, and inquiries.
INQUIRY = _("Inquiry: %(outcome)s.")
REPEATED = _("%(answer)s %(count)d times in a row.")
CHARGE_INQUIRY = _("Inquiry about the charge: %(outcome)s.")
UNSIGNED = _("A notification reports %(amount)s. It is not signed, so the bank is asked to confirm it.")
STATEMENT = _("A bank statement reports: %(bank_transaction)s.")
ONLY_STATEMENT = _("Only the statement reports it so far: the money cannot be paid out.")
# Decisions.
APPROVAL_REQUESTED = _("%(amount)s need approval by a second person: %(reason)s.")
DECIDED = {
    ApprovalStatus.APPROVED: _("A second person approved {amount}: {kind}."),
    ApprovalStatus.REJECTED: _("A second person rejected {amount}: {kind}."),
    ApprovalStatus.CANCELED: _("The approval of {amount} was canceled: {kind}."),
}
SLIP = _("A slip of this payment's money was checked.")
SLIP_OF_OTHER_MONEY = _("A slip for this payment was checked that belongs to other money.")
SLIP_OF_NO_MONEY = _("A slip for this payment was checked that no bank has reported.")
# Webhooks.
RESENT = _("%(event)s will be resent.")
HELD = _("%(event)s is held for a replay: %(reason)s.")
ANSWERED = _("%(event)s is sent: %(http_status)s in %(duration_ms)s ms.")
NOT_ANSWERED = _("%(event)s is sent: %(error)s.")
DROPPED = _("%(event)s is not sent: the webhook was %(reason)s.")
