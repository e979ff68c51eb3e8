"""Form fields for what people type or paste: names, accounts, references, and amounts."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from core import money


class PlainCharField(forms.CharField):
    """A text as a function of `core.plain_text` returns it. The rules of the field judge what it returns."""

    def __init__(self, *, plain: Callable[[str], str], **kwargs: Any) -> None:
        self._plain = plain
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        return super().to_python(self._plain(value) if isinstance(value, str) else value)


class BahtField(forms.CharField):
    """An amount in baht. Its value is satang, or None if it is not needed and empty.

    largest: satang, or None if the form itself says what is too much.
    """

    wrong = gettext_lazy("Enter an amount in baht, such as 250 or 1,250.50.")

    def __init__(self, *, smallest: int = 1, largest: int | None = money.MAX_AMOUNT, **kwargs: Any) -> None:
        self._smallest, self._largest = smallest, largest
        super().__init__(max_length=20, **kwargs)
        self.widget.attrs |= {"autocomplete": "off", "inputmode": "decimal"}

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        satang = money.parse(text)
        largest = self._largest
        if satang is None:
            raise ValidationError(self.wrong)
        if satang < self._smallest or (largest is not None and satang > largest):
            raise ValidationError(self.error_messages.get("limits", self.wrong))
        return satang
