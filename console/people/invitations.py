"""Invitations: a link by which a new member of staff chooses a password, once and within three days.

The user with the roles exists from the invitation on, without a password. So the rules of who gives what
apply to the person who invites, and the page of the user shows the roles. The token of the link is made as
Django's for a forgotten password. PASSWORD_RESET_TIMEOUT, a password, a login or another email address makes
it useless.
"""

from typing import Any

from allauth.account.utils import perform_login
from django import forms
from django.conf import settings
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import grants
from console.people.login_log import record_change, subject_of
from core import request_context
from core.console import sites
from core.observing.security_log import SecurityEvent


class InvitationGone(Exception):
    """The link is wrong, too old, or was used."""


class InvitationTokens(PasswordResetTokenGenerator):
    key_salt = "console.people.invitations"  # no token of another purpose is an invitation


tokens = InvitationTokens()


class InvitationForm(forms.ModelForm[User]):
    """A new person, and the roles that the inviting one can give."""

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email", "groups"]
        widgets = {"groups": forms.CheckboxSelectMultiple}
        labels = {"groups": gettext_lazy("Roles")}
        help_texts = {
            "groups": "",
            "username": gettext_lazy("It never changes, because records name staff by it."),
        }

    def __init__(self, giver: Any, data: Any = None) -> None:
        super().__init__(data)
        roles: Any = self.fields["groups"]
        roles.queryset = grants.offered_groups(giver)


def invite_page(request: HttpRequest) -> HttpResponse:
    """Invite somebody, and show the link once."""
    with grants.taking_turns(request):
        if not request.user.has_perm("auth.add_user"):
            raise PermissionDenied
        form = InvitationForm(request.user, request.POST or None)
        if form.is_valid():
            return _link_page(request, *_invite_new(form))
    return sites.page(request, "admin/people/invite.html", _("Invite a colleague"), form=form)


def invite_again_page(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show a new link for a person who has no password yet."""
    with grants.taking_turns(request):
        # Locked, because the person may choose a password with the earlier link in this moment.
        people = User.objects.select_for_update() if request.method == "POST" else User.objects.all()
        person = people.filter(pk=object_id).first() if object_id.isdecimal() else None
        if person is None or not may_invite_again(request.user, person):
            raise PermissionDenied
        if request.method == "POST":
            with recorded(Act.INVITED, person):
                link = new_link(person)
            return _link_page(request, person, link)
    return sites.page(request, "admin/people/invite_again.html", _("New invitation link"), person=person)


def may_invite_again(inviter: Any, person: User) -> bool:
    """Nobody makes a link for a person who holds more, or who has a password or logged in before."""
    return (
        inviter.has_perm("auth.add_user")
        and person.is_active
        and not person.has_usable_password()
        and person.last_login is None
        and grants.may_change_person(inviter, person)
    )


def invitation_page(request: HttpRequest) -> HttpResponse:
    """Let an invited person choose a password, and log in."""
    token = request.POST.get("token") or request.GET.get("token") or ""
    try:
        person = _invited(token, User.objects.all())
        form = SetPasswordForm(person, request.POST or None)
        if not form.is_valid():
            shown: dict[str, Any] = {"form": form, "token": token, "person": person}
            return sites.page(request, "admin/people/invitation.html", _("Welcome"), **shown)
        with transaction.atomic():
            # Of two requests with the same link one is refused. An admin may take it back in this moment.
            _invited(token, User.objects.select_for_update())
            request_context.set_actor(subject_of(person))
            with recorded(Act.INVITATION_ACCEPTED, person):
                form.save()
    except InvitationGone:
        title = _("This link is not valid any more")
        return sites.page(request, "admin/people/invitation_gone.html", title, status=410)
    answer: HttpResponse = perform_login(request, person, redirect_url=reverse("admin:index"))
    return answer


def new_link(person: User, urlconf: str | None = None) -> str:
    """A link in place of an earlier one, in a transaction. urlconf: of another site than the page's."""
    person.set_unusable_password()  # another one each time, so the tokens of earlier links are wrong
    person.save(update_fields=["password"])
    token = f"{person.pk}-{tokens.make_token(person)}"
    return f"{settings.BASE_URL}{reverse('admin:invitation', urlconf=urlconf)}?{urlencode({'token': token})}"


def _invited(token: str, people: QuerySet[User]) -> User:
    """The person whom the link is for. Raises InvitationGone."""
    key, _dash, secret = token.partition("-")
    is_key = key.isdecimal() and len(key) < 10
    person = people.filter(pk=key, is_active=True).first() if is_key else None
    if person is None or person.has_usable_password() or not tokens.check_token(person, secret):
        raise InvitationGone
    return person


def _invite_new(form: InvitationForm) -> tuple[User, str]:
    with recorded(Act.INVITED) as recording:
        person = form.save(commit=False)
        person.is_staff = True
        person.save()
        form.save_m2m()
        recording.row = person
        names = sorted(person.groups.values_list("name", flat=True))
        recording.details["groups"] = names
        link = new_link(person)
    record_change(SecurityEvent.ROLE_CHANGED, person, "+user", *(f"+group {name}" for name in names))
    return person, link


def _link_page(request: HttpRequest, person: User, link: str) -> HttpResponse:
    title, hours = _("Invitation"), settings.PASSWORD_RESET_TIMEOUT // 3600
    return sites.page(request, "admin/people/invited.html", title, person=person, link=link, hours=hours)
