"""Staff who decide approvals, and the approvals that wait."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from approvals import payout_accounts, services
from approvals.models import Approval, PayoutAccount
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.approvals import approval_admin
from core import clock
from tests.conftest import Shop
from tests.context import acting_as
from tests.staff_acts import send_act
from tests.withdrawals.builders import ACCOUNT

LIST = "/admin/approvals/approval/"
MALEE = "staff:malee"


def staff(name: str, *permissions: str) -> Client:
    """Log in a member of staff who may see approvals, with these permissions."""
    user = User.objects.create_user(name, is_staff=True)
    granted = ["view_approval", *permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=granted))
    client = Client()
    client.force_login(user)
    return client


def approval_of(subject_id: str) -> Approval:
    found: Approval = Approval.objects.filter(subject_id=subject_id).latest("requested_at", "id")
    return found


def waiting() -> list[str]:
    """Return the waiting subjects, the oldest first."""
    return list(
        Approval.objects.waiting().order_by("requested_at", "id").values_list("subject_id", flat=True)
    )


def decide_approval(
    subject_id: str, how: str, *, actor: str = MALEE, note: str = "checked by phone"
) -> Approval:
    """Approve or reject, as the console does."""
    approval = approval_of(subject_id)
    decide = {"approve": services.approve, "reject": services.reject}[how]
    act = {"approve": Act.APPROVED, "reject": Act.REJECTED}[how]
    with acting_as(actor), recorded(act, approval, reason=note):
        return decide(approval.id, approval_admin.HANDLERS[approval.kind], note=note, now=clock.now())


def try_to_decide(subject_id: str, how: str, actor: str) -> bool:
    """Approve or reject. Return False if the approval can no longer be decided."""
    try:
        decide_approval(subject_id, how, actor=actor)
    except services.NotDecidable:
        return False
    return True


def add_payout_account(
    shop: Shop, *, age: timedelta = timedelta(hours=25), bank_code: str = "014"
) -> PayoutAccount:
    """Add the account of all withdrawals in tests to the merchant's list, as of `age` ago."""
    added_at = clock.now() - age
    with acting_as(MALEE):
        return payout_accounts.add(
            shop.merchant, bank_code=bank_code, bank_account=ACCOUNT, account_name="Somchai", now=added_at
        )


def listed(client: Client, **query: Any) -> str:
    answer = client.get(LIST, query)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def page(client: Client, subject_id: str) -> str:
    answer = client.get(f"{LIST}{approval_of(subject_id).id.replace('_', '_5F')}/change/")
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def click(client: Client, how: str, subject_id: str, note: str = "checked by phone") -> str:
    """Approve or reject on the page of this act. Return the next page."""
    answer = send_act(client, Approval, approval_of(subject_id).id, how, reason=note)
    assert answer.status_code in (200, 403), answer.status_code
    return answer.content.decode()
