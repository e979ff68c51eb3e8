"""Record what staff do, in the transaction in which they do it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model

from audit_trail import confirmation, values
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.values import Values
from core import request_context


class _ActForm(NamedTuple):
    act: Act
    reason: str
    token: UUID


_act_form: ContextVar[_ActForm | None] = ContextVar("act_form", default=None)


class NotInTransaction(Exception):
    """An act and its record must be rolled back together, so both need one transaction."""


@dataclass(slots=True)
class Recording:
    """An act that happens now. Its block may set `act` and `row`, and add `details` to the values after."""

    act: Act
    row: Model | None
    details: Values = field(default_factory=dict)


@contextmanager
def recorded(
    act: Act, row: Model | None = None, *, reason: str = "", form_token: UUID | None = None
) -> Iterator[Recording]:
    """Run an act and write its record in one transaction. An error in the block rolls back both.

    row: what the act is about, as it is before. An act that creates a row sets it inside the block.
    form_token: of the form that asked for the act. A second record with it raises IntegrityError.
    Raises ReauthenticationRequired before the act, or at its end if the act became known in the block.
    """
    confirmation.check(act)
    with transaction.atomic():
        recording = Recording(act, row)
        stored = None if row is None else _stored_values(row)
        yield recording
        assert recording.row is not None, "a recorded act names its object"
        after = _stored_values(recording.row)
        before, after = ({}, values.filled(after)) if stored is None else values.changes(stored, after)
        after |= values.stored("", recording.details)
        write(recording.act, recording.row, before=before, after=after, reason=reason, form_token=form_token)


@contextmanager
def recorded_by_service(act: Act, *, reason: str, form_token: UUID) -> Iterator[None]:
    """Run a service that writes the record of this act itself, with the reason and the token of the form."""
    confirmation.check(act)
    before = _act_form.set(_ActForm(act, reason, form_token))
    try:
        yield
    finally:
        _act_form.reset(before)


def write(
    act: Act,
    row: Model,
    *,
    before: Values | None = None,
    after: Values | None = None,
    reason: str = "",
    form_token: UUID | None = None,
) -> AuditRecord:
    """Record an act. Raises NotInTransaction outside of its transaction, and ReauthenticationRequired."""
    confirmation.check(act)
    # pytest-django runs each test in a transaction of its own, which does not count.
    if all(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
        raise NotInTransaction
    form = _act_form.get()
    if form is not None and form.act == act:
        reason, form_token = form.reason, form.token
    object_type = row._meta.label_lower
    merchant_id = row.pk if object_type == "merchants.merchant" else getattr(row, "merchant_id", None)
    changed = {"before": before or {}, "after": after or {}}
    told = {"reason": reason.strip(), "form_token": form_token}
    return _insert(act, object_type, str(row.pk), merchant_id=merchant_id or "", **changed, **told)


def write_erasure(object_type: str, details: Values, *, reason: str) -> AuditRecord:
    """Record that personal data was erased. The record says how much and why, and not whose."""
    return _insert(Act.ERASED, object_type, after=values.stored("", details), reason=reason.strip())


def _insert(act: Act, object_type: str, object_id: str = "", **fields: Any) -> AuditRecord:
    now = request_context.current()
    fields |= request_context.columns() | {"address": now.address, "session": now.session}
    return AuditRecord.objects.create(act=act, object_type=object_type, object_id=object_id, **fields)


def _stored_values(row: Model) -> Values:
    """The values of the row in the database: the given instance may be older. Empty if it is gone."""
    found = type(row)._base_manager.filter(pk=row.pk).first()
    return {} if found is None else values.of_row(found)


def viewed(object_type: str, object_id: str) -> None:
    """It locks nothing that another page waits for."""
    _insert(Act.VIEWED, object_type, object_id)


def searched(object_type: str, details: Values) -> None:
    _insert(Act.SEARCHED, object_type, after=values.stored("", details))


def exported(object_type: str, details: Values, object_id: str = "") -> None:
    _insert(Act.EXPORTED, object_type, object_id, after=values.stored("", details))
