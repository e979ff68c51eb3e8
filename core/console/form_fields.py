"""A form field for names, accounts and references that people type or paste."""

from collections.abc import Callable
from typing import Any

from django import forms


class PlainCharField(forms.CharField):
    """A text as a function of `core.plain_text` returns it. The rules of the field judge what it returns."""

    def __init__(self, *, plain: Callable[[str], str], **kwargs: Any) -> None:
        self._plain = plain
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        return super().to_python(self._plain(value) if isinstance(value, str) else value)
