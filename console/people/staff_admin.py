"""The console pages of staff and roles. Staff are never deleted. The security log records role changes.

`console.people.grants` has the rules of who may change whom.
"""

from collections.abc import Iterator
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Model, OuterRef
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ActLink, ActPages
from audit_trail.pages import RecordedAdmin
from console.people import grants, invitations, roles, sign_in
from console.people.account_pages import browser_name
from console.people.login_log import subject_of
from console.people.staff_acts import STAFF_ACTS
from core import clock
from core.console import admin_columns, summaries
from core.console.summaries import Summary
from core.observing import security_log
from core.observing.security_log import SecurityEvent

# The fields that grant rights.
FLAG_FIELDS = ("is_staff", "is_superuser")
MAX_SESSIONS = 20
GRANT_FIELDS = ("groups", "user_permissions", "permissions")


class PermissionField(forms.ModelMultipleChoiceField[Any]):
    def label_from_instance(self, obj: Any) -> str:
        act = roles.ACTS_BY_PERMISSION.get(f"{obj.content_type.app_label}.{obj.codename}")
        if act is None:
            return str(obj.name)
        model = obj.content_type.model_class()
        is_one_of_several = len(act.permissions) > 1 and model is not None
        return f"{act.label} ({model._meta.verbose_name_plural})" if is_one_of_several else str(act.label)


class GrantingAdmin(RecordedAdmin):
    """A page that gives rights. It offers only what its user can give."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with grants.taking_turns(request):
            return super().changeform_view(request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with grants.taking_turns(request):
            return super().delete_view(request, *args, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **how: Any) -> Any:
        assert request is not None, "the admin has one"
        if db_field.name == "groups":
            how["queryset"] = grants.offered_groups(request.user)
        else:
            how |= {"queryset": grants.offered_permissions(request.user), "form_class": PermissionField}
        return super().formfield_for_manytomany(db_field, request, **how)


class StaffAdmin(ActPages, GrantingAdmin, UserAdmin[User]):
    """A user name never changes, because records name staff by it."""

    object_acts = STAFF_ACTS
    change_form_template = "admin/person.html"
    list_display = ["username", "full_name", "roles", "second_step", "last_login", "active"]
    list_filter = ["groups", "is_active", "is_superuser"]
    fieldsets = (
        (None, {"fields": ("username", "password", "first_name", "last_name", "email")}),
        (_("Rights"), {"fields": ("is_staff", "is_superuser", "groups", "user_permissions")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        steps = Authenticator.objects.filter(user=OuterRef("pk"), type__in=sign_in.APP_OR_PASSKEY)
        company = SocialAccount.objects.filter(user=OuterRef("pk"))
        found = super().get_queryset(request).prefetch_related("groups")
        return found.annotate(has_step=Exists(steps), has_company=Exists(company))

    @admin.display(description=_("name"))
    def full_name(self, person: User) -> str:
        return person.get_full_name() or "-"

    @admin.display(description=_("roles"))
    def roles(self, person: User) -> str:
        names = [_("Superuser")] if person.is_superuser else []
        return ", ".join(map(str, [*names, *(gettext(group.name) for group in person.groups.all())])) or "-"

    @admin.display(description=_("second step"))
    def second_step(self, person: Any) -> str:
        if person.has_step or person.has_company:
            return admin_columns.badge("enabled", _("yes") if person.has_step else _("the company's login"))
        return admin_columns.badge("failed", _("none"))

    @admin.display(description=_("active"))
    def active(self, person: User) -> str:
        if person.is_active:
            return admin_columns.badge("active", _("Active"))
        return admin_columns.badge("disabled", _("Disabled"))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **more: Any) -> HttpResponse:
        if (person := more.get("obj")) is not None:
            sessions = UserSession.objects.filter(user=person).order_by("-last_seen_at")[:MAX_SESSIONS]
            context |= summaries.context(request, self._summary(person)) | {
                "sessions": [(each, browser_name(each.user_agent)) for each in sessions],
                "actor": subject_of(person),
            }
        shown: HttpResponse = super().render_change_form(request, context, *args, **more)
        return shown

    def _summary(self, person: Any) -> Summary:
        """Whether this person can log in, how, and when they last did."""
        if not person.is_active:
            return Summary(_("This login is disabled."), "calm")
        last = clock.display(person.last_login) if person.last_login else gettext("never")
        text = gettext("%(roles)s. Last login: %(at)s.") % {"roles": self.roles(person), "at": last}
        if person.has_step or person.has_company:
            return Summary(text, "good")
        missing = gettext("There is no second step yet.")
        return Summary(f"{text} {missing}", "wait")

    def get_urls(self) -> list[Any]:
        invite = self.admin_site.admin_view(invitations.invite_page)
        again = self.admin_site.admin_view(invitations.invite_again_page)
        return [
            path("invite/", invite, name="auth_user_invite"),
            path("<str:object_id>/invite/", again, name="auth_user_invite_again"),
            *super().get_urls(),
        ]

    def act_view(self, request: HttpRequest, object_id: str, slug: str) -> HttpResponse:
        """Act on a colleague who holds nothing more. One's own account has a page of its own."""
        with grants.taking_turns(request):
            person = self.get_object(request, object_id)
            if person is not None and not self._may_act_on(request, person):
                raise PermissionDenied
            return super().act_view(request, object_id, slug)

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        if not self._may_act_on(request, row):
            return []
        links = super().act_links(request, row)
        if invitations.may_invite_again(request.user, row):
            url = reverse("admin:auth_user_invite_again", args=[row.pk])
            links.append(ActLink(_("New invitation link"), url, is_dangerous=False))
        return links

    def _may_act_on(self, request: HttpRequest, person: User) -> bool:
        return person.pk != request.user.pk and grants.may_change_person(request.user, person)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        is_allowed = super().has_change_permission(request, obj)
        return is_allowed and (obj is None or grants.may_change_person(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only a superuser makes superusers, and changes their own rights."""
        fixed = [] if obj is None else ["username"]
        if not request.user.is_superuser:
            fixed.append("is_superuser")
            if obj is not None and obj.pk == request.user.pk:
                fixed += ["is_staff", "groups", "user_permissions"]
        return [*super().get_readonly_fields(request, obj), *fixed]

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Django's page, in one transaction with its record."""
        with grants.taking_turns(request):
            answer = super().user_change_password(request, id, form_url)
            if request.method == "POST" and answer.status_code == 302:
                person: Any = self.get_object(request, id)
                sign_in.end_sessions(person, but=request.session.session_key)
            return answer

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if "email" in form.changed_data:
            SocialAccount.objects.filter(user=form.instance).delete()
        _record(subject_of(form.instance), list(role_changes(form)) if change else ["+user"])


class RoleAdmin(GrantingAdmin, GroupAdmin):
    """Groups are the roles of staff. Those of the declaration are shown, and change with a new version."""

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        is_allowed = super().has_change_permission(request, obj)
        return is_allowed and (obj is None or grants.may_change_group(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        is_allowed = super().has_delete_permission(request, obj)
        return is_allowed and (obj is None or grants.may_change_group(request.user, obj))

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
