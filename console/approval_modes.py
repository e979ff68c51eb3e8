"""Whether the money of an approval is real, also if it belongs to no merchant."""

from typing import Any

from django.db.models import Exists, OuterRef, Q

from merchants.models import Mode
from merchants.services import SANDBOX
from reconciliation.models import BankTransaction, Return


def of_mode(approvals: Any, mode: str) -> Any:
    """Approvals of live or test money. Without a merchant, the bank of the money tells."""
    subject = OuterRef("subject_id")
    written_off = BankTransaction.objects.filter(pk=subject, bank=SANDBOX)
    returned = Return.objects.filter(pk=subject, movement__bank=SANDBOX)
    is_sandbox = Q(Exists(written_off) | Exists(returned))
    has_no_merchant = Q(merchant=None) & (is_sandbox if mode == Mode.TEST else ~is_sandbox)
    return approvals.filter(Q(merchant__mode=mode) | has_no_merchant)
