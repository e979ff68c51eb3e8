"""The tables of money in."""

from receipts.models.acts import Act, Deed, Return, ReturnStatus
from receipts.models.confirmations import ConfirmationInquiry
from receipts.models.inquiries import Enrolment, Inquiry, InquiryAnswer, Rest, Said, Turn
from receipts.models.notices import Notice, Verdict
from receipts.models.receipts import HELD, IllegalMove, Kind, Outcome, Receipt, Resolution, Source
from receipts.models.slips import SlipCheck
from receipts.models.statements import LineResult, Statement, StatementLine
from receipts.models.waiting import Waiting, Why

__all__ = [
    "HELD", "Act", "ConfirmationInquiry", "Deed", "Enrolment", "IllegalMove", "Inquiry", "InquiryAnswer",
    "Kind", "LineResult", "Notice", "Outcome", "Receipt", "Resolution", "Rest", "Return", "ReturnStatus",
    "Said", "SlipCheck", "Source", "Statement", "StatementLine", "Turn", "Verdict", "Waiting", "Why",
]  # fmt: skip
