"""Roles of the database: the owner migrates, the application works, reports read, pages of shops read.

All roles are groups without a login. A login becomes a member: `CREATE ROLE web LOGIN PASSWORD '...' IN ROLE
thaiqr_app`. What the application may do to a table comes from the rules of its model: an operation that a
trigger always refuses is not granted. So a new table needs no list, and a rule holds twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model

from core.database import rows, triggers
from core.database.roles import APPLICATION, REPORTS, SHOP
from core.database.triggers import Refuse
from operations.data_protection import shop_fence

PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE")
MIGRATIONS = "django_migrations"  # Django's table, which has no model
# A trigger of these types has a condition of its own.
CONDITIONAL = (triggers.ReadOnly, triggers.Transitions)
# Reports see no column that proves or opens anything. `core.vault` names sealed columns by their suffix.
HIDDEN_COLUMNS = re.compile(r".*(_sealed|_fingerprint|digest)|password|session|form_token")
HIDDEN_TABLES = {
    "console_exportpart",  # lists with names of customers
    "console_signinlimit",
    "django_session",
    "mfa_authenticator",
    "socialaccount_socialaccount",
    "socialaccount_socialapp",
    "socialaccount_socialtoken",
    "usersessions_usersession",
    "idempotency_idempotencykey",
    "operations_encryptionkeycheck",
    "transfers_databaseidentity",
    "transfers_databasemark",
}


HOW_TO_CREATE = (
    f"CREATE ROLE {APPLICATION} NOLOGIN; CREATE ROLE {REPORTS} NOLOGIN; {shop_fence.HOW_TO_CREATE}"
)


class RolesMissing(Exception):
    """The roles do not exist, and this user may not create roles."""


@dataclass(frozen=True)
class MissingRights:
    found: str
    advice: str
    # A login without the rights of the application cannot read. One that reads but cannot write a table may
    # run another release than the one that gave the rights.
    includes_reading: bool


def application_privileges(table: str) -> list[str]:
    """What the application may do to a table. It reads those without a model, such as views."""
    model = _models().get(table)
    if model is None:
        return ["SELECT"]
    # The triggers that refuse an operation whatever the row has.
    refusals = [
        rule
        for rule in getattr(model._meta, "triggers", ())
        if isinstance(rule, Refuse) and not isinstance(rule, CONDITIONAL) and rule.condition is None
    ]
    refused = {part for rule in refusals for part in str(rule.operation).split(" OR ")}
    return [each for each in PRIVILEGES if each not in refused]


def report_columns(table: str, columns: list[str]) -> list[str]:
    """Those of the columns that reports may read: none of a table that is not ours or is hidden."""
    if table in HIDDEN_TABLES or table not in _models():
        return []
    return [each for each in columns if not HIDDEN_COLUMNS.fullmatch(each)]


def create() -> None:
    """Create the roles that do not exist. Raises RolesMissing."""
    may_create = "SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"
    for role in sorted({APPLICATION, REPORTS, SHOP} - _existing()):
        if rows.run(may_create, []).fetchone() != (True,):
            raise RolesMissing
        rows.run(shop_fence.HOW_TO_CREATE if role == SHOP else f"CREATE ROLE {role} NOLOGIN", [])


@transaction.atomic
def grant() -> None:
    """Give the roles exactly these privileges in this database. Running it again changes nothing."""
    with connection.cursor() as cursor:
        cursor.execute("; ".join(statements()))


def statements() -> Iterator[str]:
    kept = _rights_of_other_releases()  # read before anything is revoked
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {APPLICATION}, {REPORTS}"
    yield f"REVOKE CREATE ON SCHEMA public FROM PUBLIC, {APPLICATION}, {REPORTS}"
    yield f"GRANT USAGE ON SCHEMA public TO {APPLICATION}, {REPORTS}"
    yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {APPLICATION}"
    # Our functions that run with the rights of the owner, whoever calls them. See `core.database.partitions`.
    owner_functions = rows.run(
        """SELECT oid::regprocedure::text FROM pg_proc
           WHERE pronamespace = 'public'::regnamespace AND prosecdef
               AND proname IN ('operations_make_partition', 'operations_drop_partitions')
           ORDER BY 1""",
        [],
    )
    for (function,) in owner_functions.fetchall():
        yield f"GRANT EXECUTE ON FUNCTION {function} TO {APPLICATION}"
    for table, columns in tables().items():
        privileges = kept.get(table) or application_privileges(table)
        yield f'GRANT {", ".join(privileges)} ON "{table}" TO {APPLICATION}'
        if readable := report_columns(table, columns):
            quoted = ", ".join(f'"{each}"' for each in readable)
            yield f'GRANT SELECT ({quoted}) ON "{table}" TO {REPORTS}'
    if SHOP in _existing():
        yield from shop_fence.statements()


def tables() -> dict[str, list[str]]:
    """The tables and views of this database and their columns, which may be those of an older release."""
    found = rows.run(
        """SELECT relname, array_agg(attname ORDER BY attnum)
           FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
           WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
           GROUP BY relname ORDER BY relname""",
        [],
    )
    return dict(found.fetchall())


def exist() -> bool:
    """Whether the service can work. Without the role of shops, only their pages are closed."""
    return _existing() >= {APPLICATION, REPORTS}


def find_missing() -> MissingRights | None:
    """Which rights of the application this session lacks, and what to do. None before there are tables."""
    ours = tables().keys() & {*_models(), MIGRATIONS}
    needed = [(table, right) for table in ours for right in application_privileges(table)]
    user, missing, includes_reading = rows.run(
        """SELECT current_user, array_agg(name || ': ' || a_right ORDER BY name, a_right),
               bool_or(a_right = 'SELECT')
           FROM unnest(%s::text[], %s::text[]) needed (name, a_right)
           WHERE NOT has_table_privilege(format('public.%%I', name), a_right)""",
        [[table for table, _ in needed], [right for _, right in needed]],
    ).fetchone()
    if not missing:
        return None
    advice = f"As a superuser: GRANT {APPLICATION} TO {user}; then run `thaiqr-server migrate` again."
    found = f"{user} lacks rights to tables ({len(missing)}), such as {missing[0]}"
    return MissingRights(found, advice, includes_reading)


def _rights_of_other_releases() -> dict[str, list[str]]:
    """What the application may do to tables without a model here. A release with the model may still run."""
    found = rows.run(
        """SELECT relname, array_agg(privilege_type ORDER BY privilege_type)
           FROM pg_class, aclexplode(relacl)
           WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
               AND relname <> ALL(%s) AND grantee = to_regrole(%s) AND privilege_type = ANY(%s)
           GROUP BY relname""",
        [[*_models(), MIGRATIONS], APPLICATION, list(PRIVILEGES)],
    )
    return dict(found.fetchall())


def _existing() -> set[str]:
    found = rows.run("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [[APPLICATION, REPORTS, SHOP]])
    return {name for (name,) in found.fetchall()}


def _models() -> dict[str, type[Model]]:
    found = apps.get_models(include_auto_created=True)
    return {model._meta.db_table: model for model in found if not model._meta.proxy}
