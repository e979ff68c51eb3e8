"""The sections of the console, the roles of staff and of a merchant's people, and which act belongs to which.

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
from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy


class Role(StrEnum):
    """The name of the group that a migration makes."""

    VIEWER = "viewer"
    SUPPORT = "support"
    FINANCE = "finance"
    ADMIN = "admin"


class ShopRole(TextChoices):
    """What a person does for a merchant. It is no group: the same person may have another one elsewhere."""

    OWNER = "owner", gettext_lazy("Owner")
    MANAGER = "manager", gettext_lazy("Manager")
    CASHIER = "cashier", gettext_lazy("Cashier")
    ACCOUNTANT = "accountant", gettext_lazy("Accountant")
    DEVELOPER = "developer", gettext_lazy("Developer")


@dataclass(frozen=True, slots=True)
class ConsoleAct:
    """Something that staff may do in the console, or people of a merchant on the pages of their shop.

    label: what it is, in their words.
    roles: the roles that may do it.
    permissions: what the pages check, such as `refunds.cancel_refund`.
    """

    label: Promise
    roles: tuple[Role | ShopRole, ...]
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


def _act(declared: dict[str, Any], act: dict[str, Any], role: Any) -> ConsoleAct:
    roles = tuple(map(role, declared["groups"][act["roles"]]))
    return ConsoleAct(gettext_lazy(act["label"]), roles, tuple(act["permissions"]))


def _sections(declared: dict[str, Any]) -> Iterable[Section]:
    for each in declared["sections"]:
        pages = (Page(**page | {"label": gettext_lazy(page["label"])}) for page in each.get("pages", ()))
        acts = (_act(declared, act, Role) for act in each["acts"])
        lists, details = tuple(each.get("lists", ())), tuple(each.get("details", ()))
        yield Section(each["name"], gettext_lazy(each["label"]), lists, details, tuple(pages), tuple(acts))


_DECLARED = tomllib.loads(Path(__file__).with_name("sections.toml").read_text())
SECTIONS = tuple(_sections(_DECLARED))
SHOP_ACTS = tuple(_act(_DECLARED, act, ShopRole) for act in _DECLARED["shop"])
ACTS = tuple(act for section in SECTIONS for act in section.acts)
ACTS_BY_PERMISSION = {permission: act for act in ACTS for permission in act.permissions}
PERMISSIONS = frozenset(ACTS_BY_PERMISSION)


def permissions_of(role: Role | ShopRole) -> frozenset[str]:
    """Return the permissions of a role, such as `refunds.cancel_refund`."""
    acts = SHOP_ACTS if isinstance(role, ShopRole) else ACTS
    return frozenset(permission for act in acts if role in act.roles for permission in act.permissions)


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
    """Django makes them after all migrations, of apps with a module of models. A migration has no modules."""
    for app_label in app_labels:
        if app_label not in apps.app_configs:
            continue  # an app of a later migration
        config = apps.get_app_config(app_label)
        if getattr(config, "models_module", None) is None:
            config.models_module = True
        create_permissions(config, apps=apps, verbosity=0)


def texts() -> list[str]:
    """The labels in English, in alphabetical order."""
    pages = (page for section in SECTIONS for page in section.pages)
    labelled: list[Any] = [*SECTIONS, *ACTS, *SHOP_ACTS, *pages]
    return sorted({*map(str, Role), *(str(each.label) for each in labelled)})


def table() -> str:
    """Return the matrix of acts and roles of staff as Markdown, for `docs/roles.md`."""
    lines = _head(Role)
    for section in SECTIONS:
        lines.append(f"| **{section.label}** | {' | '.join('' for _role in Role)} | |")
        lines += (_line(act, Role) for act in section.acts)
    return "\n".join(lines) + "\n"


def shop_table() -> str:
    return "\n".join([*_head(ShopRole), *(_line(act, ShopRole) for act in SHOP_ACTS)]) + "\n"


def _head(roles: Any) -> list[str]:
    return [
        f"| act | {' | '.join(role.value for role in roles)} | permission |",
        f"| --- | {' | '.join(':---:' for _role in roles)} | --- |",
    ]


def _line(act: ConsoleAct, roles: Any) -> str:
    marks = " | ".join("yes" if role in act.roles else "-" for role in roles)
    names = ", ".join(f"`{permission}`" for permission in act.permissions)
    return f"| {act.label} | {marks} | {names} |"
