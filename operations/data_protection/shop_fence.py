"""Which rows pages of a merchant's people show, enforced twice.

`PATHS` is the only declaration. Pages filter by it (`narrowed`). The role that reads for them (`reading_for`)
has no right to a table. It reads views with the names of these tables, which have the rows of one merchant.
See docs/decisions/103-shops.md for why it is not row level security.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.apps import apps
from django.db import DataError, ProgrammingError, connection, transaction
from django.db.models import QuerySet

from core.database import rows
from core.database.roles import APPLICATION, SHOP

PATHS: Mapping[str, str] = {
    "merchants.merchant": "id",
    "merchants.apikey": "merchant",
    "payments.payment": "merchant",
    "payments.paymentexception": "payment__merchant",
    "links.paymentlink": "merchant",
    "refunds.refund": "merchant",
    "withdrawals.withdrawal": "merchant",
    "approvals.payoutaccount": "merchant",
    "settlements.settlement": "merchant",
    "settlements.settleditem": "settlement__merchant",
    "transactions.transaction": "merchant",
    "webhooks.endpoint": "merchant",
    "webhooks.endpointhealth": "endpoint__merchant",
    "webhooks.endpointaction": "endpoint__merchant",
    "webhooks.event": "merchant",
    "webhooks.delivery": "endpoint__merchant",
    "webhooks.deliveryattempt": "delivery__endpoint__merchant",
    "request_log.requestrecord": "merchant_id",
}
"""How a row of each model leads to its merchant."""
NAMES_OF_MODELS = "django_content_type"
"""Django's pages read it. It has no rows of merchants."""
SETTING = "thaiqr.merchant_id"
HOW_TO_CREATE = f"CREATE ROLE {SHOP} NOLOGIN ROLE {APPLICATION};"
SCHEMA = "thaiqr_shop"
"""Of the views. The role finds them before the tables."""
DROP = f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"
_merchant: ContextVar[str] = ContextVar("merchant_of_pages", default="")


class FenceMissing(Exception):
    """There is no role that this login may act as, or no view for it, so nothing is shown."""


def narrowed(found: QuerySet[Any], merchant_id: str) -> QuerySet[Any]:
    return found.filter(**{PATHS[found.model._meta.label_lower]: merchant_id})


@contextmanager
def reading_for(merchant_id: str) -> Iterator[None]:
    """Read only rows of this merchant, in one transaction, and write nothing. Raises FenceMissing."""
    if _merchant.get():
        yield
        return
    with transaction.atomic():
        _act_as(SHOP, merchant_id)
        token = _merchant.set(merchant_id)
        try:
            yield
        finally:
            _merchant.reset(token)
        _act_as("none", "")  # after an error the rollback does it


@contextmanager
def lifted() -> Iterator[None]:
    """Run a service of the API, which finds what belongs to a row that was read behind the fence."""
    merchant_id = _merchant.get()
    if not merchant_id:
        yield
        return
    _act_as("none", "")
    token = _merchant.set("")
    try:
        yield
    except BaseException:
        transaction.set_rollback(True)  # nothing reads without the fence after an error that somebody catches
        raise
    finally:
        _merchant.reset(token)
    _act_as(SHOP, merchant_id)


def find_problem() -> str | None:
    """Why this login cannot read for a merchant, or None."""
    (may_act,) = rows.run(
        "SELECT bool_or(pg_has_role(current_user, oid, 'MEMBER')) FROM pg_roles WHERE rolname = %s", [SHOP]
    ).fetchone()
    if not may_act:
        return f"the login of the service is no member of {SHOP}"
    (schema,) = rows.run("SELECT to_regnamespace(%s)::text", [SCHEMA]).fetchone()
    return None if schema else "the owner of the tables may not create a schema in this database"


def statements() -> Iterator[str]:
    """The SQL that makes the views anew. None if this login may not, or tables are missing."""
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {SHOP}"
    (may_create,) = rows.run("SELECT has_database_privilege(current_database(), 'CREATE')", []).fetchone()
    shown = {apps.get_model(label)._meta.db_table for label in PATHS}
    if not may_create or not shown <= set(connection.introspection.table_names()):
        return
    yield f"GRANT USAGE ON SCHEMA public TO {SHOP}"
    yield from (DROP, f"CREATE SCHEMA {SCHEMA}", f"GRANT USAGE ON SCHEMA {SCHEMA} TO {SHOP}")
    for label in PATHS:
        table = apps.get_model(label)._meta.db_table
        view = f'{SCHEMA}."{table}"'
        found = f'SELECT * FROM public."{table}" {_rule(label)}'  # noqa: S608 (names of ours)
        # No security_barrier: a list would sort all rows of its merchant, and people write no SQL.
        yield f"CREATE VIEW {view} AS {found}"
        yield f"GRANT SELECT ON {view} TO {SHOP}"
    yield f"GRANT SELECT ON {NAMES_OF_MODELS} TO {SHOP}"


def _rule(label: str) -> str:
    """A row is of the merchant, or its parent is, which has a view before it."""
    model, (first, _, rest) = apps.get_model(label), PATHS[label].partition("__")
    field: Any = model._meta.get_field(first)
    if not rest:
        return f"WHERE {field.column} = current_setting('{SETTING}', true)"
    parent, own = field.related_model._meta, model._meta.db_table
    assert PATHS[parent.label_lower] == rest, "the parent leads to the merchant by the same path"
    return (
        f'WHERE EXISTS (SELECT FROM {SCHEMA}."{parent.db_table}" parent'
        f' WHERE parent.{parent.pk.column} = "{own}".{field.column})'
    )


def _act_as(role: str, merchant_id: str) -> None:
    path = f"{SCHEMA}, public" if role == SHOP else None  # none: as the session began
    try:
        found = rows.run(
            """SELECT to_regnamespace(%s) IS NOT NULL, set_config('role', %s, true), set_config(%s, %s, true),
                   set_config('search_path', %s, true)""",
            [SCHEMA, role, SETTING, merchant_id, path],
        ).fetchone()
    except (DataError, ProgrammingError) as error:  # the role is unknown, or not of this login
        raise FenceMissing from error
    if not found[0]:
        raise FenceMissing
