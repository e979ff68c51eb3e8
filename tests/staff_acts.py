"""What the audit trail has about members of staff."""

from typing import Any

from audit_trail.acts import Act
from audit_trail.models import AuditRecord


def acts_of_staff() -> Any:
    """The records of acts in the console, without views of pages."""
    return AuditRecord.objects.filter(actor__startswith="staff:").exclude(act=Act.VIEWED).order_by("id")
