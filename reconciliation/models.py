"""All models of the app, from its packages."""

from payments.match_results import HELD_RESULTS, MatchResult
from reconciliation.exceptions.listing import ExceptionReason, ReconciliationException
from reconciliation.exceptions.models import Excess, Resolution, ResolutionType, Return, ReturnStatus
from reconciliation.inquiries.models import (
    Backoff,
    BankRateLimit,
    ConfirmationInquiry,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    ScanCursor,
)
from reconciliation.matching.models import (
    BankTransaction,
    BankTransactionKind,
    ReportSource,
    ResolutionState,
)
from reconciliation.notifications.models import BankNotification, NotificationId, NotificationResult
from reconciliation.slips.models import SlipCheck
from reconciliation.statements.models import (
    LineResult,
    Statement,
    StatementImport,
    StatementLine,
    StatementPart,
    StatementUpload,
)
