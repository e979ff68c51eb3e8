"""Plain SQL where the ORM's price is felt: one statement for several new rows, one for one row by id.

Column lists come from the models, so that nothing here goes stale; `tests/core/test_rows.py` holds both
equal to the ORM's own way. Used on the hot paths only: creating a QR code, reading one object, statements.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.db.models.base import ModelState

from core.postgres.base import DatabaseWrapper

# Fields whose values the database driver takes as they are; asking the others for their form costs.
_PASSED_THROUGH = (
    models.CharField,
    models.TextField,
    models.BinaryField,
    models.BooleanField,
    models.DateTimeField,
    models.IntegerField,
    models.ForeignKey,
)
M = TypeVar("M", bound=Model)


def run(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> CursorWrapper:
    """Run a statement; its result is there until the next one of this thread."""
    cursor: CursorWrapper = cast(DatabaseWrapper, connection).reusable_cursor()
    cursor.execute(sql, values)
    return cursor


def insert_together(rows: Sequence[Model]) -> None:
    """Insert all `rows`, of any models, by one statement: atomic by itself, one round trip, one fsync.

    Foreign keys between the rows hold, since PostgreSQL judges them after the whole statement.
    Raises IntegrityError like `save(force_insert=True)`, and then none is inserted.
    """
    values = chain.from_iterable(_values(row) for row in rows)
    run(_insert_sql(tuple(type(row) for row in rows)), list(values))
    for row in rows:
        row._state.adding = False


def copy_in(rows: Sequence[Model]) -> None:
    """Insert many `rows` of one model by COPY: a third of the price of `bulk_create`. A key that the database
    numbers stays unknown. Raises IntegrityError, and then none is inserted."""
    if not rows:
        return
    # Django translates the errors of a cursor's own methods, and `copy` is none of them.
    translated, sql = connection.wrap_database_errors, _copy_sql(type(rows[0]))
    with translated, connection.cursor() as cursor, cursor.copy(sql) as copy:
        for row in rows:
            copy.write_row(_values(row))
    for row in rows:
        row._state.adding = False


def insert_many(rows: Sequence[Model]) -> None:
    """Insert rows of one model: several by COPY, and one by INSERT, which needs one round trip less."""
    (insert_together if len(rows) == 1 else copy_in)(rows)


def update_rows(rows: Sequence[Model], names: Sequence[str]) -> None:
    """Write what `rows`, of one model, now hold in the fields `names`, by one statement: what `bulk_update`
    does, without a CASE for each field. The caller holds their locks."""
    if not rows:
        return
    model = type(rows[0])
    values = [_column_values(rows, field) for field in _updated_fields(model, tuple(names))]
    run(_rewrite_sql(model, tuple(names)), values)


def new(model: type[M], **fields: Any) -> M:
    """A row to be inserted: what `model(**fields)` makes, without asking each field what it thinks of it.

    Raises TypeError for a field that the model does not have.
    """
    instance, defaults = model.__new__(model), _defaults(model)
    values, instance._state = instance.__dict__, ModelState()
    values.update(defaults)
    for name, value in fields.items():
        if isinstance(value, Model):
            instance._state.fields_cache[name] = value
            values[f"{name}_id"] = value.pk
        else:
            values[name] = value
    if len(values) != len(defaults) + 1:  # and the state
        extra = sorted(values.keys() - defaults.keys() - {"_state"})
        raise TypeError(f"{model.__name__} has no {', '.join(extra)}")
    return instance


def fetch(model: type[M], **where: Any) -> M | None:
    """The one row whose columns equal `where`, or None."""
    found = run(_select_sql(model, tuple(where)), list(where.values())).fetchone()
    return None if found is None else instance(model, found)


def find(model: type[M], rest: str, *values: Any) -> list[M]:
    """The rows of `SELECT ... FROM table t` and this rest, such as `WHERE t.id = ANY(%s)`.

    For many at once: a list is one value here, where the ORM's `IN` has a mark for each of its items.
    """
    return [instance(model, found) for found in run(f"{_from(model)} {rest}", values).fetchall()]


def instance(model: type[M], values: Sequence[Any]) -> M:
    """A model instance of the values of all its columns, in the model's order, converted as the ORM does.

    Not by the model's own constructor, which asks each field and rings two signals that nobody hears.
    """
    instance = model.__new__(model)
    instance.__dict__.update(zip(_names(model), values, strict=True))
    for name, convert in _readers(model):
        instance.__dict__[name] = convert(instance.__dict__[name], None, connection)
    instance._state = ModelState()
    instance._state.adding, instance._state.db = False, "default"
    return instance


def columns(model: type[Model], alias: str) -> str:
    """`alias.column, ...` of all columns in the model's order, for `instance`."""
    return ", ".join(f"{alias}.{_quoted(field.column)}" for field in _fields(model))


@lru_cache
def _fields(model: type[Model]) -> tuple[Any, ...]:
    return tuple(field for field in model._meta.concrete_fields)


@lru_cache
def _names(model: type[Model]) -> list[str]:
    return [field.attname for field in _fields(model)]


@lru_cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    return {field.attname: field.get_default() for field in _fields(model)}


@lru_cache
def _readers(model: type[Model]) -> list[tuple[str, Callable[..., Any]]]:
    return [
        (field.attname, field.from_db_value) for field in _fields(model) if hasattr(field, "from_db_value")
    ]


@lru_cache
def _inserted_fields(model: type[Model]) -> tuple[Any, ...]:
    """The columns an INSERT names: a key that the database numbers is left to it."""
    return tuple(field for field in _fields(model) if field is not model._meta.auto_field)


def _values(row: Model) -> list[Any]:
    values = row.__dict__
    return [
        convert(values[name], connection) if convert else values[name]
        for name, convert in _writers(type(row))
    ]


@lru_cache
def _writers(model: type[Model]) -> list[tuple[str, Callable[..., Any] | None]]:
    return [(field.attname, _writer(field)) for field in _inserted_fields(model)]


def _writer(field: Any) -> Callable[..., Any] | None:
    return None if isinstance(field, _PASSED_THROUGH) else field.get_db_prep_save


def _column_values(rows: Sequence[Model], field: Any) -> list[Any]:
    values, convert = [row.__dict__[field.attname] for row in rows], _writer(field)
    return [convert(value, connection) for value in values] if convert else values


@lru_cache(maxsize=256)
def _insert_sql(models: tuple[type[Model], ...]) -> str:
    inserts = [_one_insert(model) for model in models]
    if len(inserts) == 1:
        return inserts[0]
    named = ", ".join(f"r{number} AS ({insert})" for number, insert in enumerate(inserts[:-1]))
    return f"WITH {named} {inserts[-1]}"


def _one_insert(model: type[Model]) -> str:
    fields = _inserted_fields(model)
    names = ", ".join(_quoted(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({names}) VALUES ({marks})"  # noqa: S608


@lru_cache
def _copy_sql(model: type[Model]) -> str:
    names = ", ".join(_quoted(field.column) for field in _inserted_fields(model))
    return f"COPY {_quoted(model._meta.db_table)} ({names}) FROM STDIN"


@lru_cache
def _updated_fields(model: type[Model], names: tuple[str, ...]) -> tuple[Any, ...]:
    """The key, and these fields."""
    return tuple(model._meta.get_field(name) for name in (model._meta.pk.name, *names))


@lru_cache
def _rewrite_sql(model: type[Model], names: tuple[str, ...]) -> str:
    fields = _updated_fields(model, names)
    value = ", ".join(f"%s::{_type_of(field)}[]" for field in fields)
    key, *columns = (_quoted(field.column) for field in fields)
    changes = ", ".join(f"{column} = new.{column}" for column in columns)
    return (
        f"UPDATE {_quoted(model._meta.db_table)} AS old SET {changes}"  # noqa: S608
        f" FROM unnest({value}) AS new ({', '.join([key, *columns])}) WHERE old.{key} = new.{key}"
    )


def _type_of(field: Any) -> str:
    """In SQL. Of text without its length: a cast cuts what is longer, an assignment refuses it."""
    error_type = str(field.rel_db_type(connection) if field.is_relation else field.db_type(connection))
    return "text" if "char" in error_type else error_type


@lru_cache
def _select_sql(model: type[Model], where: tuple[str, ...]) -> str:
    wanted = " AND ".join(f"t.{_quoted(_column(model, name))} = %s" for name in where)
    return f"{_from(model)} WHERE {wanted}"


@lru_cache
def _from(model: type[Model]) -> str:
    return f"SELECT {columns(model, 't')} FROM {_quoted(model._meta.db_table)} t"  # noqa: S608


def _column(model: type[Model], name: str) -> str:
    return next(str(field.column) for field in _fields(model) if name in (field.name, field.attname))


def _quoted(name: str) -> str:
    return f'"{name}"'
