"""Rules of one table that PostgreSQL enforces, declared in `Meta.triggers` of its model.

`makemigrations` writes them down by django-pgtrigger. Rules that look at other tables are functions in the
`.sql` files of their app.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pgtrigger
from django.apps import apps
from django.db import models
from pgtrigger import compiler

from core.database.columns import RawJson

INSERT, UPDATE, DELETE, TRUNCATE = pgtrigger.Insert, pgtrigger.Update, pgtrigger.Delete, pgtrigger.Truncate
STATEMENT = pgtrigger.Statement
# `manage.py reseal` sets it for its transaction. Sealed columns may get another token then: their digest
# (`core.digests`) never changes, and tells whether the content is the same.
RESEALING = "current_setting('qr.resealing', true) IS NOT DISTINCT FROM 'on'"
# `operations.data_protection.erasure` sets it for its transaction. Personal data of a finished row may become
# empty then.
ERASING = "current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on'"


class TriggerSql(compiler.UpsertTriggerSql):
    """The template of django-pgtrigger without its `ignore`, a setting by which any session skips a trigger.

    One way around a rule remains: the owner of the table can disable its triggers.
    """

    def get_template(self) -> str:
        return """
            CREATE OR REPLACE FUNCTION {pgid}() RETURNS TRIGGER AS $$
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql;
            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE {constraint} TRIGGER {pgid} {when} {operation} ON {table} {timing} {referencing}
                FOR EACH {level} {condition} EXECUTE FUNCTION {execute};
            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class Refuse(pgtrigger.Trigger):
    """Refuse the operation where the SQL `condition` on OLD and NEW is true.

    A refused change is a check violation. With `is_forbidden` it is a missing privilege instead: the
    operation is never allowed.

    The function of an UPDATE has the condition. PostgreSQL would read the text of a WHEN anew for each
    statement: 0.2 ms for an UPDATE of a payment. A function is read once a session.
    """

    def __init__(
        self,
        name: str,
        operation: Any,
        message: str,
        *,
        condition: str = "",
        level: Any = pgtrigger.Row,
        is_forbidden: bool = False,
    ) -> None:
        self.message = message
        self.error = "insufficient_privilege" if is_forbidden else "check_violation"
        super().__init__(
            name=name,
            operation=operation,
            level=level,
            when=pgtrigger.Before,
            condition=pgtrigger.Condition(f"({condition})") if condition else None,
        )

    def get_func(self, model: Any) -> str:
        refusal = f"RAISE EXCEPTION {self.get_message(model)} USING ERRCODE = '{self.error}';"
        condition = self.get_condition(model)
        is_update = condition is not None and self.operation is UPDATE
        return f"IF {condition.sql} THEN {refusal} END IF; RETURN NEW;" if is_update else refusal

    def get_message(self, model: Any) -> str:
        """The text, and the values in it."""
        return f"'{self.message}'"

    def render_condition(self, model: Any) -> str:
        return "" if self.operation is UPDATE else str(super().render_condition(model))

    def compile(self, model: Any) -> compiler.Trigger:
        compiled = super().compile(model)
        compiled.sql.kwargs.pop("ignore_func_name", None)
        return compiler.Trigger(name=self.name, sql=TriggerSql(**compiled.sql.kwargs))


NOT_BY_TRIGGERS = (
    "pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class"
    " WHERE oid = TG_RELID)"
)
"""Whether something else than a trigger function with the rights of the owner of the table writes to it."""


class WrittenByTriggers(Refuse):
    """Only trigger functions with the rights of the owner of the table do this to its rows.

    These are `SECURITY DEFINER`, and nobody else may EXECUTE them: a trigger of somebody else, such as one of
    a temporary table, does not have these rights. Depth 1 is this trigger alone: a mistake of the owner.
    """

    def __init__(self, message: str, operation: Any = INSERT | UPDATE | TRUNCATE) -> None:
        super().__init__("written_by_triggers", operation, message, level=STATEMENT, is_forbidden=True)

    def get_func(self, model: Any) -> str:
        return f"IF {NOT_BY_TRIGGERS} THEN {super().get_func(model)} END IF; RETURN NULL;"


class ReadOnly(Refuse):
    """Columns that never change after the INSERT: `fields`, or all but `exclude`.

    While data is resealed, the sealed columns may get another token, with their fingerprint, and no other
    column may change. While personal data is erased, the columns in `erasable` may become empty, if the SQL
    `erasable_if` on OLD is true, and no other column may change.
    """

    def __init__(
        self,
        message: str,
        *,
        fields: Collection[str] = (),
        exclude: Collection[str] = (),
        erasable: Collection[str] = (),
        erasable_if: str = "true",
        is_forbidden: bool = False,
    ) -> None:
        self.fields, self.exclude = fields, exclude
        self.erasable, self.erasable_if = set(erasable), erasable_if
        super().__init__("read_only", UPDATE, message, is_forbidden=is_forbidden)

    def get_condition(self, model: Any) -> pgtrigger.Condition:
        fields = {field.name: field for field in model._meta.fields}
        if unknown := {*self.fields, *self.exclude, *self.erasable} - set(fields):
            raise ValueError(f"{model._meta.label} has no fields {sorted(unknown)}")
        read_only = set(self.fields) or set(fields) - set(self.exclude)
        sealed = {name for name in fields if name.endswith("_sealed")}
        sealed |= {name.replace("_sealed", "_fingerprint") for name in sealed} & set(fields)
        special = read_only & (sealed | self.erasable)
        clauses = [f"({_any_changed(fields, read_only - special)})"]
        for name in [name for name in fields if name in special]:
            clauses.append(f"{_changed(fields[name])}{_unless(self._allowed(fields[name], sealed))}")
        for setting, columns in ((RESEALING, sealed), (ERASING, self.erasable)):
            if columns and (others := set(fields) - read_only - columns):
                clauses.append(f"{setting} AND ({_any_changed(fields, others)})")
        return pgtrigger.Condition(f"({' OR '.join(clauses)})")

    def _allowed(self, field: "models.Field[Any, Any]", sealed: Collection[str]) -> Iterator[str]:
        """The changes that are allowed of a column that is read-only."""
        if field.name.endswith("_sealed"):
            yield resealed(field.column)
        elif field.name in sealed:
            yield RESEALING
        if field.name in self.erasable:
            yield erased(field.column, self.erasable_if)


def resealed(column: str | None) -> str:
    """Whether one token, of text or bytes, takes the place of another, while data is resealed."""
    tokens = (f"substr({row}.{column}, 1, 7) = 'sealed:'" for row in ("OLD", "NEW"))
    return f"{RESEALING} AND {' AND '.join(tokens)}"


def erased(column: str | None, erasable_if: str = "true") -> str:
    """Whether the column becomes empty, while personal data is erased."""
    return f"{ERASING} AND coalesce(NEW.{column}, '') = '' AND ({erasable_if})"


def _changed(field: "models.Field[Any, Any]") -> str:
    # PostgreSQL does not compare json. A temporary type named `text` would come before this one.
    cast = "::pg_catalog.text" if isinstance(field, RawJson) else ""
    return f'OLD."{field.column}"{cast} IS DISTINCT FROM NEW."{field.column}"{cast}'


def _any_changed(fields: Mapping[str, Any], names: Collection[str]) -> str:
    return " OR ".join(_changed(field) for name, field in fields.items() if name in names)


def _unless(allowed: Iterable[str]) -> str:
    return "".join(f" AND ({each}) IS NOT TRUE" for each in allowed)


class Transitions(Refuse):
    """The state of a `core.database.state_machines.StateMachine` changes only as its TRANSITIONS allow."""

    def __init__(self) -> None:
        super().__init__("transitions", UPDATE, "")

    def get_condition(self, model: Any) -> pgtrigger.Condition:
        machine = self._machine(model)
        field, table = machine.STATE_FIELD, machine.TRANSITIONS
        pairs = [(str(old), str(new)) for old, targets in table.items() for new in sorted(targets)]
        allowed = ", ".join(f"('{old}', '{new}')" for old, new in pairs)
        is_other = f"(OLD.{field}, NEW.{field}) NOT IN ({allowed})"
        return pgtrigger.Condition(f"(OLD.{field} <> NEW.{field} AND {is_other})")

    def get_message(self, model: Any) -> str:
        field, name = self._machine(model).STATE_FIELD, model._meta.verbose_name
        return f"'{name} cannot change from % to %', OLD.{field}, NEW.{field}"

    @staticmethod
    def _machine(model: Any) -> Any:
        """The class of the model. `makemigrations` compiles triggers for a copy that has only its fields."""
        return apps.get_model(model._meta.label)


def sql_list(values: Iterable[Any]) -> str:
    """What stands behind IN. The values are those of our catalogues, without quotes in them."""
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


def initial(field: str, states: Collection[Any], *, noun: str) -> Refuse:
    """A new row begins in one of these states."""
    condition = f"NEW.{field} NOT IN {sql_list(states)}"
    return Refuse(f"{field}_initial", INSERT, f"{noun} cannot begin like that", condition=condition)


def set_once(
    field: str, message: str, *, is_text: bool = False, erasable_if: str = "", is_forbidden: bool = False
) -> Refuse:
    """A column that is filled once; from then on it never changes. `is_text`: empty is '' and not NULL.

    A sealed column may be resealed. With `erasable_if`, SQL on OLD, it may be erased.
    """
    was_filled = f"OLD.{field} <> ''" if is_text else f"OLD.{field} IS NOT NULL"
    allowed = [resealed(field)] if field.endswith("_sealed") else []
    if erasable_if:
        allowed.append(erased(field, erasable_if))
    condition = f"{was_filled} AND NEW.{field} IS DISTINCT FROM OLD.{field}{_unless(allowed)}"
    return Refuse(f"{field}_set_once", UPDATE, message, condition=condition, is_forbidden=is_forbidden)


def final(
    field: str,
    open_states: Collection[Any],
    columns: Collection[str],
    message: str,
    *,
    is_forbidden: bool = False,
) -> Refuse:
    """Columns that only change together with the state in `field`, from the first that is not open on."""
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    condition = (
        f"OLD.{field} NOT IN {sql_list(open_states)} AND NEW.{field} = OLD.{field} "
        f"AND ({new}) IS DISTINCT FROM ({old})"
    )
    return Refuse(f"{field}_final", UPDATE, message, condition=condition, is_forbidden=is_forbidden)


def append_only(message: str) -> Refuse:
    """Rows are inserted and never change: no UPDATE, DELETE or TRUNCATE."""
    operation = UPDATE | DELETE | TRUNCATE
    return Refuse("append_only", operation, message, level=STATEMENT, is_forbidden=True)


def never_updated(message: str) -> Refuse:
    """Rows are inserted, and some may be deleted, but they never change."""
    return Refuse("no_update", UPDATE | TRUNCATE, message, level=STATEMENT, is_forbidden=True)


def keep_rows(message: str) -> Refuse:
    """Rows are never deleted."""
    return Refuse("keep_rows", DELETE | TRUNCATE, message, level=STATEMENT, is_forbidden=True)


def no_truncate(message: str) -> Refuse:
    """For tables of which some rows may be deleted."""
    return Refuse("no_truncate", TRUNCATE, message, level=STATEMENT, is_forbidden=True)
