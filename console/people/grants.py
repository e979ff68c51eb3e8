"""Who may change staff and roles. Nobody gives what they do not have.

A person may change another one only if that person holds nothing more. Otherwise a new password, or a lost
right, would be a way around. A superuser may do everything, and only a superuser may change a superuser.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest

from console.people.roles import PERMISSIONS, Role
from core.database import rows

# Any constant. Changes of staff and roles take turns under this advisory lock.
LOCK_ID = 5_207_310_114


@contextmanager
def taking_turns(request: HttpRequest) -> Iterator[None]:
    """Let a change of staff or roles wait for another one, and read the rights of its user again after that.

    Otherwise somebody could still give a permission that a colleague takes away in this moment.
    """
    if request.method != "POST":
        yield
        return
    with transaction.atomic():
        lock()
        request.user = User.objects.get(username=request.user.get_username())
        if not (request.user.is_active and request.user.is_staff):
            raise PermissionDenied
        yield


def lock() -> None:
    """Wait until no other transaction changes staff or roles."""
    rows.run("SELECT pg_advisory_xact_lock(%s)", [LOCK_ID])


def offered_permissions(giver: Any) -> QuerySet[Permission]:
    """The permissions of the console that this person holds, and so can give."""
    full_name = Concat("content_type__app_label", Value("."), "codename")
    declared = Permission.objects.alias(full_name=full_name).filter(full_name__in=PERMISSIONS)
    return declared.filter(pk__in=_held_by(giver)).select_related("content_type").order_by("name")


def offered_groups(giver: Any) -> QuerySet[Group]:
    """The roles all of whose permissions this person holds."""
    return Group.objects.exclude(permissions__in=_not_held_by(giver)).order_by("name")


def may_change_person(editor: Any, person: User) -> bool:
    """A person who cannot log in counts with all rights, because a change could let them in again."""
    if editor.is_superuser:
        return True
    return not (person.is_superuser or _hold_more([person.pk], editor))


def may_change_group(editor: Any, group: Group) -> bool:
    """A role of the declaration never changes here. Others change what all their members may do.

    So nobody changes a role with a member who holds more, or their own role.
    """
    if group.name in set(Role):
        return False
    if editor.is_superuser:
        return True
    members = group.user_set.all()
    return not (
        members.filter(Q(pk=editor.pk) | Q(is_superuser=True)).exists()
        or group.permissions.filter(pk__in=_not_held_by(editor)).exists()
        or _hold_more(list(members.values_list("pk", flat=True)), editor)
    )


def _hold_more(people: list[int], editor: Any) -> bool:
    theirs = Q(user__in=people) | Q(group__user__in=people)
    return Permission.objects.filter(theirs, pk__in=_not_held_by(editor)).exists()


def _held_by(person: Any) -> QuerySet[Any]:
    if person.is_superuser:
        return Permission.objects.values("pk")
    return Permission.objects.filter(Q(user=person) | Q(group__user=person)).values("pk")


def _not_held_by(person: Any) -> QuerySet[Any]:
    return Permission.objects.exclude(pk__in=_held_by(person)).values("pk")
