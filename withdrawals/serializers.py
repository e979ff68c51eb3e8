from typing import Any

from rest_framework import serializers

from core import money
from core.http import fields
from core.http.paging import PeriodPageQuery
from payments.serializers import Reference
from transfers.serializers import Payee
from withdrawals.models import WithdrawalStatus


class _AmountFields(serializers.Serializer[Any]):
    """A separate base class, because errors name the first invalid field in the order of the bases."""

    amount = fields.Amount()
    currency = fields.Choice([money.CURRENCY], help_text="ISO 4217; only THB.")


class WithdrawalRequest(_AmountFields, Payee):
    """What to send, and the account that it goes to."""

    reference = Reference(help_text="Your own reference of the withdrawal.")
    metadata = fields.Metadata(required=False)


class WithdrawalQuery(PeriodPageQuery):
    """Filters of the list of withdrawals."""

    status = fields.Choice(WithdrawalStatus.values, required=False, help_text="Only this status.")
    reference = Reference(min_length=1, help_text="The merchant's reference.")
