"""Acts before which staff confirm who they are: an unattended screen must not be enough to send money.

A login, or an answer to the question, is a confirmation for ten minutes. `recorded` asks for it, and each
act of staff is recorded, so no page can forget it. `console.people.sign_in` leads to the question.
"""

from allauth.core.exceptions import ReauthenticationRequired

from audit_trail.acts import Act
from core import request_context

CONFIRMED_ACTS = frozenset({
    # Outgoing money, and where it may go.
    Act.REFUND_CREATED, Act.WITHDRAWAL_CREATED, Act.APPROVED, Act.REJECTED, Act.TRANSFER_COMPLETED,
    Act.COMPLETION_REQUESTED, Act.TRANSFERS_RESUMED, Act.LOST_ORDER_RECORDED, Act.PAYOUT_ACCOUNT_ADDED,
    Act.PAYOUT_ACCOUNT_REMOVED, Act.PAYOUT_LIST_SWITCHED, Act.UNSETTLED_CHANGED, Act.FEES_SET,
    Act.QUESTION_CLOSED, Act.PAYOUT_SCHEDULE_CHANGED, Act.MONTH_CLOSED, Act.STATEMENT_UNDONE,
    Act.MERCHANT_CREATED, Act.MERCHANT_SUSPENDED, Act.SUSPENSION_LIFTED,
    # The name, the logo and the contact that payers see, and the sites that may frame the payment page.
    Act.MERCHANT_RENAMED, Act.PAGE_SETTINGS_CHANGED, Act.PAGE_ORIGINS_CHANGED, Act.BANK_CONNECTED,
    Act.KEY_ISSUED, Act.KEY_ROLLED, Act.KEY_REVOKED,
    # Where events and messages go.
    Act.ENDPOINT_ADDED, Act.ENDPOINT_CHANGED,
    # Staff and roles: no other rows are changed by forms.
    Act.ADDED, Act.CHANGED, Act.DELETED, Act.INVITED, Act.LOGIN_DISABLED, Act.LOGIN_ENABLED,
    Act.MEMBERSHIP_ENDED, Act.SECOND_FACTOR_ADDED, Act.SECOND_FACTOR_REMOVED, Act.SECOND_FACTOR_RESET,
    Act.PASSKEY_ADDED, Act.PASSKEY_REMOVED, Act.RECOVERY_CODES_RENEWED, Act.COMPANY_DISCONNECTED,
})  # fmt: skip


def check(act: Act) -> None:
    """Raises ReauthenticationRequired if the act needs a confirmation and this request has none."""
    if act in CONFIRMED_ACTS:
        require()


def require() -> None:
    """Raises ReauthenticationRequired if this request is of staff whose last confirmation is too old."""
    if request_context.current().needs_confirmation():
        raise ReauthenticationRequired
