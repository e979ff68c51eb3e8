"""The console pages of staff and roles. Staff are never deleted. The security log records role changes."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from console.login_log import subject_of
from core import security_log
from core.admin import RecordedAdmin
from core.security_log import SecurityEvent

# The fields that grant rights.
FLAG_FIELDS = ("is_active", "is_staff", "is_superuser")
GRANT_FIELDS = ("groups", "user_permissions", "permissions")


class StaffAdmin(RecordedAdmin, UserAdmin[User]):
    """A user name never changes, because records name staff by it."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fixed = ["username"] if obj is not None else []
        return [*super().get_readonly_fields(request, obj), *fixed]

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Django's page, in one transaction with its record."""
        return super().user_change_password(request, id, form_url)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        _record(subject_of(form.instance), list(role_changes(form)) if change else ["+user"])


class RoleAdmin(RecordedAdmin, GroupAdmin):
    """Groups are the roles of staff."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        created = [] if change else ["+group"]
        _record(_subject_of_group(form.instance), [*created, *role_changes(form)])

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        super().delete_model(request, obj)
        _record(_subject_of_group(obj), ["-group"])


admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.register(User, StaffAdmin)
admin.site.register(Group, RoleAdmin)


def role_changes(form: forms.ModelForm[Any]) -> Iterator[str]:
    """The changes of rights, such as `-is_active` or `+permission withdrawals.change_withdrawal`."""
    for name in form.changed_data:
        if name in FLAG_FIELDS:
            yield f"{'+' if form.cleaned_data[name] else '-'}{name}"
        elif name in GRANT_FIELDS:
            before, after = set(form.initial.get(name, [])), set(form.cleaned_data[name])
            yield from sorted(f"+{_describe_grant(row)}" for row in after - before)
            yield from sorted(f"-{_describe_grant(row)}" for row in before - after)


def _describe_grant(row: Any) -> str:
    if isinstance(row, Group):
        return f"group {row.name}"
    return f"permission {row.content_type.app_label}.{row.codename}"


def _subject_of_group(group: Group) -> str:
    return f"group:{group.name}"


def _record(subject: str, changes: list[str]) -> None:
    if changes:
        security_log.record_on_commit(SecurityEvent.ROLE_CHANGED, subject=subject, changes=changes)
