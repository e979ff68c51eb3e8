"""The account that a merchant sends money to."""

import unicodedata
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core import plain_text
from core.errors import invalid_field
from core.http import fields
from core.thai import thaibanks
from transfers.models import MAX_NAME_LENGTH

InvalidBankCode = invalid_field("bank_code", "the 3-digit code or the short name of a bank (GET /v1/banks)")
InvalidBankAccount = invalid_field("bank_account", "the digits of an account number at that bank")
InvalidAccountName = invalid_field("account_name", "a string of 1 to 140 characters in one line")


@extend_schema_field(
    {
        "type": "string",
        "enum": [*(each.code for each in thaibanks.BANKS), *(each.alias.upper() for each in thaibanks.BANKS)],
    }
)
class BankCode(fields.Text):
    """A bank by its code or short name. Responses have no such enum: a new bank breaks no client."""


class Payee(serializers.Serializer[Any]):
    """An account at a bank in Thailand. A short name in `bank_code` becomes the 3-digit code."""

    default_error_messages = fields.OBJECT
    bank_code = BankCode(
        plain=plain_text.visible,
        min_length=2,
        max_length=10,
        is_shown=True,
        help_text="The bank's 3-digit code, or its short name such as SCB.",
    )
    bank_account = fields.Text(
        plain=plain_text.compact,
        min_length=thaibanks.MIN_DIGITS,
        max_length=thaibanks.MAX_DIGITS,
        help_text="Digits. Blanks and dashes between them do not count.",
    )
    account_name = fields.Text(
        plain=plain_text.name,
        max_length=MAX_NAME_LENGTH,
        help_text="The name of the account holder at the bank.",
    )

    def validate_bank_code(self, given: str) -> str:
        bank = thaibanks.find(given)
        if bank is None:
            raise serializers.ValidationError(_("is not the code or short name of a bank"))
        return bank.code

    def validate_account_name(self, given: str) -> str:
        if any(unicodedata.category(character) == "Cc" for character in given):
            raise serializers.ValidationError(_("must be in one line"))
        return given

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            thaibanks.check_account(attrs["bank_code"], attrs["bank_account"])
        except ValueError as refusal:
            raise serializers.ValidationError({"bank_account": [str(refusal)]}) from None
        return attrs
