"""Audit records as staff read them: labels, amounts in baht, times in Bangkok."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.admin.utils import quote
from django.core.exceptions import FieldDoesNotExist
from django.db.models import AutoField, BooleanField, F, Func, Q
from django.urls import NoReverseMatch, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.note_models import Note
from core import clock, ids, money, request_context
from core.console.admin_columns import short_id

MAX_SHOWN = 20
MAX_VALUE_LENGTH = 200
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AMOUNT = re.compile(r"(^|_)(amount|balance|satang)(_|$)")
NOTHING = "-"
NAME_COLUMNS = {
    "auth.user": "username",
    "auth.group": "name",
    "merchants.merchant": "name",
    "reconciliation.statement": "file_name",
}
# As text and not as a parameter, because PostgreSQL uses the partial index only if it knows the value.
IS_NO_VIEW = Func(F("act"), template=f"%(expressions)s <> '{Act.VIEWED.value}'", output_field=BooleanField())


def changes(record: AuditRecord) -> list[str]:
    """The changed fields of a record, in the order of their names. A new row does not repeat its ids."""
    known, found = (record.object_id, record.merchant_id), []
    for name in sorted(record.before | record.after):
        label, after = _label(record.object_type, name), _text(name, record.after.get(name))
        if name in record.before:
            found.append(f"{label}: {_text(name, record.before[name])} → {after}")
        elif record.after[name] not in known:
            found.append(f"{label}: {after}")
    return found


def who(record: AuditRecord) -> str:
    return request_context.display_name(record.actor) or NOTHING


def type_label(object_type: str) -> str:
    """The name of a model as pages show it. Records of a model that is gone keep its label."""
    try:
        return str(capfirst(apps.get_model(object_type)._meta.verbose_name))
    except (LookupError, ValueError):
        return object_type


def names(records: Iterable[AuditRecord]) -> dict[tuple[str, str], str]:
    """The names of people, roles, merchants and files, by type and id."""
    found: dict[tuple[str, str], str] = {}
    for object_type, column in NAME_COLUMNS.items():
        of_type = [record for record in records if record.object_type == object_type]
        found |= {
            (object_type, record.object_id): str(values[column])
            for record in of_type
            if column in (values := record.before | record.after)
        }
        model = apps.get_model(object_type)
        has_numbers = isinstance(model._meta.pk, AutoField)
        keys = {each.object_id for each in of_type if each.object_id.isdecimal() or not has_numbers}
        known = model._default_manager.filter(pk__in=keys)
        found |= {(object_type, str(key)): name for key, name in known.values_list("pk", column)}
    return found


def object_names(records: Sequence[AuditRecord]) -> list[str]:
    """What each record is about: the type, and the name or the short id."""
    known = names(records)
    found = ((each, known.get((each.object_type, each.object_id))) for each in records)
    return [f"{type_label(each.object_type)} {name or short_id(each.object_id)}" for each, name in found]


def page_of(record: AuditRecord | Note) -> str | None:
    try:
        return reverse(f"admin:{record.object_type.replace('.', '_')}_change", args=[quote(record.object_id)])
    except NoReverseMatch:
        return None


def acts_on(object_type: str, object_id: str, parts: Sequence[tuple[str, str]] = ()) -> list[AuditRecord]:
    """The newest acts on an object and its parts (types and ids), without views of its page."""
    about = Q(object_id=object_id)
    # Objects that share a public id are one object to staff: a bank transaction and its exception.
    if not ids.looks_right(object_id, ""):
        about &= Q(object_type=object_type)
    for part_type, part_id in parts:
        about |= Q(object_type=part_type, object_id=part_id)
    return list(AuditRecord.objects.filter(about, IS_NO_VIEW).order_by("-id")[:MAX_SHOWN])


def acts_of(actor: str) -> list[AuditRecord]:
    """The newest acts of a person, with views."""
    return list(AuditRecord.objects.filter(actor=actor).order_by("-id")[:MAX_SHOWN])


def _label(object_type: str, name: str) -> str:
    try:
        return str(capfirst(apps.get_model(object_type)._meta.get_field(name).verbose_name))
    except (LookupError, ValueError, FieldDoesNotExist):
        return str(capfirst(name.replace("_", " ")))


def _text(name: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int) and _AMOUNT.search(name):
        return money.display(value)
    if isinstance(value, str) and _TIME.fullmatch(value):
        return clock.display(datetime.fromisoformat(value))
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
