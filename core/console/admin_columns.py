"""How lists of the console show values: short ids that copy whole, coloured states, links."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import label_for_field, lookup_field, quote
from django.core.exceptions import FieldDoesNotExist
from django.db.models import BigIntegerField, BooleanField, Field, Model
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from core import failures, money
from core.database.columns import PublicId, RawJson

STATE_FIELDS = frozenset({"status", "state", "outcome", "match_result", "result"})
# The colour says whether somebody must act, so all lists use the same one for the same word.
TONES = {
    "good": "succeeded completed active enabled approved delivered applied matched paid arrived",
    "wait": "pending waiting held queued submitted processing open sending_back late paused unverified",
    "bad": "failed failing rejected disabled returned unknown_reference wrong_amount unreadable differs",
    "info": "refunded test",
}
TONE_BY_VALUE = {value: tone for tone, values in TONES.items() for value in values.split()}
# The prefix and the last characters identify a row among the ones that staff look at.
SHOWN_CHARACTERS = 6
LONGEST_WHOLE_ID = 16
ID_FIELDS = frozenset({"bank_reference", "charge_id", "request_id", "transaction_id"})
# Columns with satang.
AMOUNT_NAME = re.compile(r"(^|_)(amount|balance|fee|net|unsettled)(_|$)")
EMPTY = "-"
# The page of what an id names, by the prefix of the id, for columns that are no foreign keys.
PAGES = {
    "mch": "merchants_merchant", "pay": "payments_payment", "ref": "refunds_refund",
    "pl": "links_paymentlink", "stl": "settlements_settlement",
    "wd": "withdrawals_withdrawal", "btx": "reconciliation_banktransaction",
}  # fmt: skip
UNREADABLE = ("_sealed", "_digest", "_fingerprint")
"""How columns end that tell nobody anything."""

Column = str | Callable[[Any], Any]


def readable_fields(model: type[Model]) -> list[str]:
    """The fields of a page about a row, without UNREADABLE ones."""
    return [field.name for field in model._meta.concrete_fields if not field.name.endswith(UNREADABLE)]


def short_id(value: str) -> str:
    """The prefix and the end of a long id, such as `pay_…Tw5kcE`. Other texts stay as they are."""
    prefix, underscore, body = value.partition("_")
    if not underscore or " " in value:
        prefix, body = "", value
    is_long = len(body) > LONGEST_WHOLE_ID and " " not in value
    return f"{prefix}{underscore and '_'}…{body[-SHOWN_CHARACTERS:]}" if is_long else value


def badge(value: str, label: Any) -> SafeString:
    """A state as a coloured word, in the language of the reader."""
    word = gettext(str(label))
    return format_html('<span class="state {}">{}</span>', TONE_BY_VALUE.get(value, "calm"), word)


def copyable(value: str) -> SafeString:
    """A short id. The script of the console adds a button that copies the whole id."""
    return format_html('<span class="id" title="{}">{}</span>', value, short_id(value))


def linked_id(value: str) -> SafeString:
    """A short id that leads to the page of its row, if its kind has one."""
    try:
        page = reverse(f"admin:{PAGES[value.partition('_')[0]]}_change", args=[quote(value)])
    except (KeyError, NoReverseMatch):
        return copyable(value)
    return format_html('<a href="{}">{}</a>', page, copyable(value))


def link_to(model: type[Model], key: Any, label: Any) -> Any:
    """A link to the page of a row, or the label alone if its model has no page."""
    try:
        page = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        return format_html('<a href="{}">{}</a>', reverse(page, args=[quote(key)]), label)
    except NoReverseMatch:
        return label


def column(title: Any, show: Callable[[Any], Any], **options: Any) -> Any:
    """A column with what `show` says of the row. The options are those of `admin.display`."""
    return admin.display(description=title, **options)(lambda page, row: show(row))


def baht(title: Any, satang: Callable[[Any], int | None]) -> Any:
    """A column with an amount of the row, if it has one, that is no field of it."""
    return column(title, lambda row: None if (amount := satang(row)) is None else money.display(amount))


def field_of(model: type[Model], name: str) -> Any:
    """The field with this name, or None for a method of the page."""
    with suppress(FieldDoesNotExist):
        return model._meta.get_field(name)
    return None


def columns(model: type[Model], names: Any) -> list[Column]:
    """The columns of a list: fields of some types are shown in a better form than Django's."""
    return [_column(model, name) if isinstance(name, str) else name for name in names]


def details(page: Any, names: Any) -> list[Column]:
    """The values of a page with one row, in the same forms. Django shows related rows by name and link."""
    return [_detail(page, name) if isinstance(name, str) else name for name in names]


def _detail(page: Any, name: str) -> Column:
    field = field_of(page.model, name)
    if field is None:
        return _titled(name, label_for_field(name, page.model, page), lambda row: _value(page, name, row))
    show = None if field.is_relation else _form_of(field)
    if isinstance(field, PublicId) and not field.primary_key:
        show = lambda row: linked_id(value) if (value := getattr(row, field.attname)) else None  # noqa: E731
    return name if show is None else _titled(name, field.verbose_name, show)


def _value(page: Any, name: str, row: Any) -> Any:
    _field, _attribute, value = lookup_field(name, row, page)
    return badge("test", "Yes") if value is True else value


def _titled(name: str, title: Any, show: Callable[[Any], Any]) -> Column:
    def value(row: Any) -> Any:
        return EMPTY if (shown := show(row)) in (None, "", False) else shown

    value.__name__ = name  # the CSS class of the row
    return admin.display(description=title)(value)


def _column(model: type[Model], name: str) -> Column:
    field = field_of(model, name)
    show = _form_of(field) if isinstance(field, Field) else None
    if show is None:
        return name
    column = admin.display(description=field.verbose_name, ordering=name)(show)
    column.__name__ = name  # the CSS class of the cell
    return column


def _form_of(field: Any) -> Callable[[Any], Any] | None:
    """The function that shows this field of a row, or None for Django's form."""
    if field.is_relation:
        return lambda row: _related(field, row)
    if field.primary_key:
        return lambda row: copyable(str(row.pk))
    if isinstance(field, PublicId) or field.name in ID_FIELDS:
        return lambda row: copyable(value) if (value := getattr(row, field.attname)) else None
    if field.name in STATE_FIELDS:
        return lambda row: badge(str(getattr(row, field.attname)), _label(field, row))
    if field.name == "failure_code":
        return lambda row: failures.words_and_code(code) if (code := getattr(row, field.attname)) else None
    return _form_of_type(field)


def _form_of_type(field: Any) -> Callable[[Any], Any] | None:
    if isinstance(field, BigIntegerField) and AMOUNT_NAME.search(field.name):
        return lambda row: None if (value := getattr(row, field.attname)) is None else money.display(value)
    if isinstance(field, RawJson):
        return lambda row: field.get_prep_value(getattr(row, field.attname))
    if isinstance(field, BooleanField):
        return lambda row: badge("test", "Yes") if getattr(row, field.attname) else ""
    return None


def _label(field: Any, row: Any) -> Any:
    return getattr(row, f"get_{field.name}_display")() if field.choices else getattr(row, field.attname)


def _related(field: Any, row: Any) -> Any:
    """The name of a row that the list reads too, else its short id: a name would need a query each."""
    key = getattr(row, field.attname)
    if key is None:
        return None
    name = str(getattr(row, field.name) if field.is_cached(row) else key)
    label = copyable(name) if name == str(key) else name
    return link_to(field.related_model, key, label)
