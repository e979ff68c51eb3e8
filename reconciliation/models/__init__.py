"""All models of the app."""

from payments.match_results import HELD_RESULTS, MatchResult
from reconciliation.models.bank_transactions import (
    BankTransaction,
    BankTransactionKind,
    ReportSource,
    ResolutionState,
)
from reconciliation.models.inquiries import (
    Backoff,
    BankRateLimit,
    ConfirmationInquiry,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    ScanCursor,
)
from reconciliation.models.listing import ExceptionReason, ReconciliationException
from reconciliation.models.notifications import BankNotification, NotificationId, NotificationResult
from reconciliation.models.resolutions import Excess, Resolution, ResolutionType, Return, ReturnStatus
from reconciliation.models.slips import SlipCheck, SlipVerdict
from reconciliation.models.statements import (
    LineResult,
    Statement,
    StatementImport,
    StatementLine,
    StatementPart,
    StatementUpload,
)
