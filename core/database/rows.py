"""Plain SQL for hot paths where the ORM costs too much.

With the ORM, a fifth fewer lives of payments and a quarter fewer deliveries pass
(docs/decisions/13-one-statement.md). The columns come from the models; `tests/core/database/test_rows.py`
compares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.db.models.base import ModelState

from core.database.base import DatabaseWrapper
from core.database.prepared import positional

# Fields whose values the database driver takes as they are. Asking a field for its form costs 2 µs.
PASSED_THROUGH = (
    models.CharField, models.TextField, models.BinaryField, models.BooleanField, models.DateTimeField,
    models.IntegerField, models.ForeignKey,
)  # fmt: skip
M = TypeVar("M", bound=Model)


def run(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> CursorWrapper:
    """Run a statement with `%s` or `%(name)s`; its result is there until the next one of this thread."""
    if isinstance(values, Mapping):
        sql, names = positional(sql)
        values = [values[name] for name in names]
    return cast(CursorWrapper, cast(DatabaseWrapper, connection).execute_fast(sql, values))


def new(model: type[M], **values: Any) -> M:
    """A new instance, as by the constructor. That takes 25 µs longer and sends signals, which nobody hears.

    Raises TypeError for an unknown name. Defaults that are calculated are not supported.
    """
    defaults, relations = _defaults(model)
    instance = _blank(model, defaults)
    attributes = instance.__dict__
    for name, value in values.items():
        if name in defaults:
            attributes[name] = value
        elif name in relations:
            relation = relations[name]
            relation.set_cached_value(instance, value)
            attributes[relation.attname] = value.pk
        else:
            raise TypeError(f"{model.__name__} has no field {name!r}.")
    return instance


def insert_together(rows: Sequence[Model]) -> None:
    """Insert all `rows`, of any models, by one statement: atomic, one round trip, one fsync.

    Rows may refer to each other: PostgreSQL checks foreign keys after the whole statement. Raises
    IntegrityError like `save(force_insert=True)`; then no row is inserted.
    """
    values = [value for row in rows for value in _values(row)]
    run(_insert_sql(tuple(type(row) for row in rows)), values)
    for row in rows:
        row._state.adding = False


def insert_once(first: Model, rows: Sequence[Model]) -> bool:
    """Insert `first` and `rows` by one statement, unless a row with a unique value of `first` exists: False.

    Waits while another transaction inserts such a row. No error, so PostgreSQL logs none and leaves no dead
    rows. Raises IntegrityError if one of the `rows` is refused; then no row is inserted.
    """
    values = [value for row in (first, *rows) for value in _values(row)]
    models = tuple(type(row) for row in rows)
    is_new: bool = run(_insert_once_sql(type(first), models), values).fetchone() == (1,)
    for row in (first, *rows):
        row._state.adding = not is_new
    return is_new


def copy_in(rows: Sequence[Model]) -> None:
    """Insert many `rows` of one model by COPY, three times as fast as `bulk_create`.

    Keys that the database numbers stay unknown. Raises IntegrityError; then no row is inserted.
    """
    if not rows:
        return
    model = type(rows[0])
    copy_values(model, [field.column for field in _inserted_fields(model)], map(_values, rows))
    for row in rows:
        row._state.adding = False


def copy_values(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows by COPY, as values of these columns. Raises IntegrityError; then no row is inserted."""
    names = ", ".join(f'"{column}"' for column in columns)
    # Django translates the errors of `execute`, and not those of `copy`.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {model._meta.db_table} ({names}) FROM STDIN") as copy,
    ):
        for values in rows:
            copy.write_row(values)


def insert_many(rows: Sequence[Model]) -> None:
    """Insert rows of one model: several by COPY, and one by INSERT, which needs one round trip less."""
    (insert_together if len(rows) == 1 else copy_in)(rows)


def insert_with(rows: Sequence[Model]) -> tuple[str, list[Any]]:
    """SQL and values that insert rows of one model, for the WITH of another statement."""
    columns = [list(column) for column in zip(*map(_values, rows), strict=True)]
    return _insert_columns_sql(type(rows[0])), columns


def update_rows(rows: Sequence[Model], names: Sequence[str]) -> None:
    """Write the fields `names` of locked `rows` of one model, ten times as fast as `bulk_update`."""
    if not rows:
        return
    model = type(rows[0])
    values = [
        [field.get_db_prep_save(row.__dict__[field.attname], connection) for row in rows]
        for field in _updated_fields(model, names)
    ]
    is_one = len(rows) == 1
    run(_update_sql(model, tuple(names), is_one), [value for (value,) in values] if is_one else values)


def find(model: type[M], rest: str, *values: Any) -> list[M]:
    """The rows of `SELECT ... FROM table t` and the `rest`, such as `WHERE t.id = ANY(%s)`.

    A list is one parameter here; `IN` of the ORM makes one of each item.
    """
    return [instance(model, found) for found in run(f"{_select_sql(model)} {rest}", values).fetchall()]


def instance(model: type[M], values: Sequence[Any]) -> M:
    """A model instance of the values of all its columns in the model's order, converted as the ORM does."""
    attributes = {
        name: convert(value, None, connection) if convert else value
        for (name, convert), value in zip(_readers(model), values, strict=True)
    }
    instance = _blank(model, attributes)
    instance._state.adding, instance._state.db = False, "default"
    return instance


def columns(model: type[Model], alias: str) -> str:
    """`alias.column, ...` of all columns in the model's order, for `instance`."""
    return ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)


def _blank(model: type[M], values: Any) -> M:
    """An instance with these attributes only."""
    instance = model.__new__(model)
    instance._state = ModelState()
    instance.__dict__.update(values)
    return instance


@lru_cache
def _defaults(model: type[Model]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The default of each attribute, and the fields that refer to other rows."""
    fields = model._meta.concrete_fields
    return (
        {field.attname: field.get_default() for field in fields},
        {field.name: field for field in fields if field.is_relation},
    )


@lru_cache
def _readers(model: type[Model]) -> list[tuple[str, Callable[..., Any] | None]]:
    fields = model._meta.concrete_fields
    return [(field.attname, getattr(field, "from_db_value", None)) for field in fields]


def _inserted_fields(model: type[Model]) -> list[Any]:
    """All but a key that the database numbers, and columns that it generates."""
    fields = model._meta.concrete_fields
    return [field for field in fields if field is not model._meta.auto_field and not field.generated]


def _values(row: Model) -> list[Any]:
    values, writers = row.__dict__, _writers(type(row))
    return [convert(values[name], connection) if convert else values[name] for name, convert in writers]


@lru_cache
def _writers(model: type[Model]) -> list[tuple[str, Callable[..., Any] | None]]:
    return [
        (field.attname, None if isinstance(field, PASSED_THROUGH) else field.get_db_prep_save)
        for field in _inserted_fields(model)
    ]


@lru_cache(maxsize=256)
def _insert_sql(models: tuple[type[Model], ...]) -> str:
    *earlier, last = (_insert_one_sql(model) for model in models)
    named = ", ".join(f"r{number} AS ({insert})" for number, insert in enumerate(earlier))
    return f"WITH {named} {last}" if earlier else last


@lru_cache(maxsize=256)
def _insert_once_sql(first: type[Model], models: tuple[type[Model], ...]) -> str:
    inserts = "".join(
        # A SELECT takes the type from the value, where VALUES takes it from the column.
        f", r{number} AS ({_into(model)} SELECT "  # noqa: S608
        + ", ".join(f"%s::{_type_of(field)}" for field in _inserted_fields(model))
        + " FROM first)"
        for number, model in enumerate(models)
    )
    claim = f"{_insert_one_sql(first)} ON CONFLICT DO NOTHING RETURNING 1"
    return f"WITH first AS ({claim}){inserts} SELECT count(*) FROM first"  # noqa: S608


def _insert_one_sql(model: type[Model]) -> str:
    marks = ", ".join(["%s"] * len(_inserted_fields(model)))
    return f"{_into(model)} VALUES ({marks})"


def _into(model: type[Model]) -> str:
    names = ", ".join(f'"{field.column}"' for field in _inserted_fields(model))
    return f"INSERT INTO {model._meta.db_table} ({names})"


@lru_cache
def _insert_columns_sql(model: type[Model]) -> str:
    arrays = ", ".join(f"%s::{_type_of(field)}[]" for field in _inserted_fields(model))
    return f"{_into(model)} SELECT * FROM unnest({arrays})"  # noqa: S608


def _updated_fields(model: type[Model], names: Sequence[str]) -> list[Any]:
    """The key, and these fields."""
    return [model._meta.pk, *(model._meta.get_field(name) for name in names)]


@lru_cache
def _update_sql(model: type[Model], names: tuple[str, ...], is_one: bool) -> str:
    """One row is a list of values, so that a plan made while the table was empty finds it by its key too."""
    fields = _updated_fields(model, names)
    source = ", ".join(f"%s::{_type_of(field)}{'' if is_one else '[]'}" for field in fields)
    source = f"(VALUES ({source}))" if is_one else f"unnest({source})"
    key, *columns = (f'"{field.column}"' for field in fields)
    changes = ", ".join(f"{column} = new.{column}" for column in columns)
    return (
        f"UPDATE {model._meta.db_table} AS old SET {changes}"  # noqa: S608
        f" FROM {source} AS new ({', '.join([key, *columns])}) WHERE old.{key} = new.{key}"
    )


def _type_of(field: Any) -> str:
    """The SQL type. Text has no length here: a cast would cut longer text, an assignment refuses it."""
    type_name = str(field.rel_db_type(connection) if field.is_relation else field.db_type(connection))
    return "text" if "char" in type_name else type_name


@lru_cache
def _select_sql(model: type[Model]) -> str:
    return f"SELECT {columns(model, 't')} FROM {model._meta.db_table} t"  # noqa: S608
