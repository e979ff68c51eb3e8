import struct
from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn.forms import AddWebAuthnForm


class AddPasskeyForm(AddWebAuthnForm):
    def clean(self) -> dict[str, Any] | None:
        """An answer that no browser gives is refused too. allauth lets the error of its parser through."""
        try:
            values: dict[str, Any] | None = super().clean()
        except (ValueError, TypeError, LookupError, AttributeError, struct.error) as error:
            raise get_adapter().validation_error("incorrect_code") from error
        return values
