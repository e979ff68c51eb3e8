"""Several people send the form of one claim link at once."""

from functools import partial

import pytest

from refunds.models import ClaimTry
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.claims.builders import claim_of
from transfers.models import Transfer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
PEOPLE = 6


def test_accounts_sent_at_once_give_one_transfer() -> None:
    claim = claim_of(open_shop("Race"), SandboxBankClient(new_client()))
    accounts = [f"40512345{number:02d}" for number in range(PEOPLE)]
    answers = run_concurrently(
        *(partial(claim.send, last_digits="7890", bank_account=account) for account in accounts)
    )
    assert {answer.status_code for answer in answers} == {303}
    order = Transfer.objects.get(pk=claim.refund["refund_id"])
    assert order.account in accounts
    assert ClaimTry.objects.filter(is_proven=True).count() == 1


def test_wrong_proofs_sent_at_once_are_five_tries_at_most() -> None:
    claim = claim_of(open_shop("Race"), SandboxBankClient(new_client()))
    answers = run_concurrently(
        *(partial(claim.send, last_digits=f"{number:04d}") for number in range(2 * PEOPLE))
    )
    assert sorted({answer.status_code for answer in answers}) == [403, 422]
    assert ClaimTry.objects.count() == 5
    assert not Transfer.objects.exists()
