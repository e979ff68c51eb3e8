"""Whether encrypted columns have the content with which they were stored, by their digests."""

from collections.abc import Iterator

from django.apps import apps

from core import vault
from core.digests import DigestedRow
from reconciliation.models import BankTransaction

CHUNK = 2000


def findings() -> Iterator[tuple[str, str]]:
    """Yield each row whose content is not the one that was stored, in the snapshot of the caller."""
    for model in apps.get_models():
        if issubclass(model, DigestedRow):
            yield from _changed_rows(model)
    yield from _other_payers()


def _changed_rows(model: type[DigestedRow]) -> Iterator[tuple[str, str]]:
    for row in model._base_manager.exclude(**{model.DIGESTED.sealed: ""}).iterator(CHUNK):
        try:
            problem = "" if row.has_its_content() else f"{model.DIGESTED.sealed} has another content"
        except vault.CannotOpen:
            problem = f"{model.DIGESTED.sealed} cannot be decrypted"
        if problem:
            yield f"{model._meta.label} {row.pk}", problem


def _other_payers() -> Iterator[tuple[str, str]]:
    """Copies on payments of another account than the bank reported. A rule compares the other columns."""
    paid = BankTransaction.objects.credited().filter(payment__payer_account_sealed__isnull=False)
    for movement in paid.select_related("payment").iterator(CHUNK):
        payment = movement.payment
        if payment is not None and payment.payer_account != movement.payer_account:
            yield payment.pk, "its payer has another account than its bank transaction"
