"""Payout accounts: the list of accounts that a merchant's money may go to, and its check."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from approvals import services as approvals
from approvals.models import PayoutAccount, PayoutPolicy
from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, digests, ids, request_context, vault
from core.errors import StateError
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from merchants.models import Merchant

log = logging.getLogger("approvals")
FIELD = "bank_account"

PayoutAccountNotAllowed = StateError.of(
    "payout_account_not_allowed", "bank_account is not on the merchant's list of payout accounts."
)
"""The merchant's money goes to listed accounts only, and this is not one of them."""
PayoutAccountTooNew = StateError.of(
    "payout_account_too_new",
    "bank_account is on the list of payout accounts, but can be used only from {usable_at}.",
)


class PayoutAccountListed(Exception):
    """The account is already on the merchant's list."""


class PayoutAccountNotFound(Exception):
    """No list has this account, or it was removed."""


def check(merchant_id: str, bank_code: str, account: str, *, now: datetime) -> None:
    """Check that money may go to the account. Raises PayoutAccountNotAllowed, PayoutAccountTooNew."""
    if is_restricted(merchant_id):
        check_listed(merchant_id, bank_code, account, now=now)


def check_listed(merchant_id: str, bank_code: str, account: str, *, now: datetime) -> None:
    """Do what `check` does, also while the list is off."""
    listed = _find(merchant_id, bank_code, account)
    if listed is None:
        raise PayoutAccountNotAllowed(param=FIELD)
    if now < listed.usable_at:
        raise PayoutAccountTooNew(param=FIELD, usable_at=clock.iso(listed.usable_at))


def lock_and_judge(merchant_id: str, bank_code: str, account: str, *, now: datetime) -> bool:
    """Whether money may go to the account, in the commit that sends it.

    The list does not change until the commit. The caller holds the locks of the order, and locks accounts of
    the ledger later.
    """
    approvals.lock_limits(merchant_id)
    try:
        check(merchant_id, bank_code, account, now=now)
    except (PayoutAccountNotAllowed, PayoutAccountTooNew) as refusal:
        log.warning("money of %s waits: %s", merchant_id, refusal.code)
        return False
    return True


def is_restricted(merchant_id: str) -> bool:
    return PayoutPolicy.objects.filter(pk=merchant_id, is_restricted=True).exists()


@transaction.atomic
def restrict(merchant: Merchant, is_restricted: bool, *, now: datetime) -> PayoutPolicy:
    """Switch the list on or off."""
    approvals.lock_limits(merchant.pk)
    known = PayoutPolicy.objects.filter(merchant=merchant).first()
    with recorded(Act.PAYOUT_LIST_SWITCHED, known) as recording:
        recording.row = policy = known or PayoutPolicy(merchant=merchant)
        policy.is_restricted, policy.changed_at = is_restricted, now
        policy.changed_by = request_context.current().actor
        policy.save()
    changes = ["+is_restricted" if is_restricted else "-is_restricted"]
    security_log.record_on_commit(
        SecurityEvent.PAYOUT_LIST_SWITCHED, merchant_id=merchant.pk, changes=changes
    )
    return policy


@transaction.atomic
def add(
    merchant: Merchant, *, bank_code: str, bank_account: str, account_name: str, now: datetime
) -> PayoutAccount:
    """Add an account, which can be used after the waiting period. Raises PayoutAccountListed."""
    # The lock lets the second of two simultaneous calls see the account of the first.
    Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    if _find(merchant.pk, bank_code, bank_account) is not None:
        raise PayoutAccountListed
    account_id = ids.new("pac_", now)
    sealed = digests.seal(bank_account, bank_code, account_name, context=account_id)
    with recorded(Act.PAYOUT_ACCOUNT_ADDED) as recording:
        recording.row = account = PayoutAccount.objects.create(
            id=account_id,
            merchant=merchant,
            bank_code=bank_code,
            account_sealed=sealed.token,
            account_digest=sealed.digest,
            account_fingerprint=vault.fingerprints(bank_account)[0],
            account_last4=bank_account[-4:],
            account_name=account_name,
            added_by=request_context.current().actor,
            added_at=now,
            usable_at=now + timedelta(hours=settings.PAYOUT_ACCOUNT_WAITING_HOURS),
        )
    _log(SecurityEvent.PAYOUT_ACCOUNT_ADDED, account)
    return account


@transaction.atomic
def remove(account_id: str, *, now: datetime) -> PayoutAccount:
    """Remove an account at once. Raises PayoutAccountNotFound, also if it was removed before."""
    for merchant_id in PayoutAccount.objects.filter(pk=account_id).values_list("merchant_id", flat=True):
        approvals.lock_limits(merchant_id)
    listed = PayoutAccount.objects.select_for_update(no_key=True).filter(pk=account_id, removed_at=None)
    found: PayoutAccount | None = listed.first()
    if found is None:
        raise PayoutAccountNotFound(account_id)
    with recorded(Act.PAYOUT_ACCOUNT_REMOVED, found):
        found.removed_by, found.removed_at = request_context.current().actor, now
        found.save(update_fields=["removed_by", "removed_at"])
    _log(SecurityEvent.PAYOUT_ACCOUNT_REMOVED, found)
    return found


def _log(event: SecurityEvent, account: PayoutAccount) -> None:
    security_log.record_on_commit(event, subject=account.pk, merchant_id=account.merchant_id)


def _find(merchant_id: str, bank_code: str, account: str) -> PayoutAccount | None:
    """Look the account up, and compare: only its digest shows that the row is as it was added."""
    listed = PayoutAccount.objects.filter(
        merchant=merchant_id,
        bank_code=bank_code,
        account_fingerprint__in=vault.fingerprints(account),
        removed_at=None,
    )
    return next((each for each in listed if each.has_its_content() and each.account == account), None)
