"""The sections of the console, the roles of staff, and which act belongs to which role.

`sections.toml` is the only declaration. The migrations make groups from it, `docs/roles.md` shows it, and a
test tries each act with each role. To add an act, declare its permission in the `Meta` of its model, add it
there, and add a migration that runs `roles.apply`.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.contrib.auth.management import create_permissions
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy


class Role(StrEnum):
    """The name of the group that a migration makes."""

    VIEWER = "viewer"
    SUPPORT = "support"
    FINANCE = "finance"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class ConsoleAct:
    """Something that staff may do in the console.

    label: what it is, in the words of staff.
    roles: the roles that may do it.
    permissions: what the pages check, such as `refunds.cancel_refund`.
    """

    label: Promise
    roles: tuple[Role, ...]
    permissions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site that is no list."""

    label: Promise
    name: str
    permission: str


@dataclass(frozen=True, slots=True)
class Section:
    """A task of staff, with the labels of the models whose lists belong to it."""

    name: str
    label: Promise
    lists: tuple[str, ...]
    details: tuple[str, ...]
    pages: tuple[Page, ...]
    acts: tuple[ConsoleAct, ...]


def _sections(declared: dict[str, Any]) -> Iterable[Section]:
    for each in declared["sections"]:
        pages = (Page(**page | {"label": gettext_lazy(page["label"])}) for page in each.get("pages", ()))
        acts = (
            ConsoleAct(
                gettext_lazy(act["label"]),
                tuple(map(Role, declared["groups"][act["roles"]])),
                tuple(act["permissions"]),
            )
            for act in each["acts"]
        )
        lists, details = tuple(each.get("lists", ())), tuple(each.get("details", ()))
        yield Section(each["name"], gettext_lazy(each["label"]), lists, details, tuple(pages), tuple(acts))


SECTIONS = tuple(_sections(tomllib.loads(Path(__file__).with_name("sections.toml").read_text())))
ACTS = tuple(act for section in SECTIONS for act in section.acts)
ACTS_BY_PERMISSION = {permission: act for act in ACTS for permission in act.permissions}
PERMISSIONS = frozenset(ACTS_BY_PERMISSION)


def permissions_of(role: Role) -> frozenset[str]:
    """Return the permissions of a role, such as `refunds.cancel_refund`."""
    return frozenset(permission for act in ACTS if role in act.roles for permission in act.permissions)


def apply(apps: Any, schema_editor: Any = None) -> None:
    """Give the four groups exactly the declared permissions. Other groups stay as they are.

    A migration of an older version may run before a permission exists. The migration that adds it comes later
    and applies the declaration again.
    """
    _create_missing_permissions(apps, {permission.partition(".")[0] for permission in PERMISSIONS})
    permissions = apps.get_model("auth", "Permission").objects
    known = {
        f"{app_label}.{codename}": key
        for app_label, codename, key in permissions.values_list("content_type__app_label", "codename", "pk")
    }
    for role in Role:
        group, _created = apps.get_model("auth", "Group").objects.get_or_create(name=role.value)
        group.permissions.set([known[each] for each in permissions_of(role) if each in known])


def _create_missing_permissions(apps: Any, app_labels: Iterable[str]) -> None:
    """Django creates permissions only after all migrations, and only for apps with a module of models.

    The apps of a migration have no modules.
    """
    for app_label in app_labels:
        if app_label not in apps.app_configs:
            continue  # an app of a later migration
        config = apps.get_app_config(app_label)
        if getattr(config, "models_module", None) is None:
            config.models_module = True
        create_permissions(config, apps=apps, verbosity=0)


def texts() -> list[str]:
    """The labels in English, in alphabetical order."""
    labelled: list[Any] = [*SECTIONS, *ACTS, *(page for section in SECTIONS for page in section.pages)]
    return sorted({str(each.label) for each in labelled})


def table() -> str:
    """Return the matrix of acts and roles as Markdown, for `docs/roles.md`."""
    lines = [
        f"| act | {' | '.join(Role)} | permission |",
        f"| --- | {' | '.join(':---:' for _role in Role)} | --- |",
    ]
    for section in SECTIONS:
        lines.append(f"| **{section.label}** | {' | '.join('' for _role in Role)} | |")
        for act in section.acts:
            marks = " | ".join("yes" if role in act.roles else "-" for role in Role)
            names = ", ".join(f"`{permission}`" for permission in act.permissions)
            lines.append(f"| {act.label} | {marks} | {names} |")
    return "\n".join(lines) + "\n"
