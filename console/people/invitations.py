"""Invitations: a link by which a new member of staff chooses a password, once and within three days.

The user with the roles exists from the invitation on, without a password. So the rules of who gives what
apply to the person who invites, and the page of the user shows the roles.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse
from django.utils.http import urlencode

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.login_log import subject_of
from console.models import Invitation
from core import request_context

PERIOD = timedelta(hours=72)
TOKEN_BYTES = 32


class InvitationGone(Exception):
    """The link is wrong, too old, or was used."""


def invite(person: User, *, now: datetime) -> str:
    """Make a link for this person, in place of an earlier one. Only the digest of its token is stored.

    The caller has a transaction.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    Invitation.objects.filter(user=person).delete()
    Invitation.objects.create(user=person, digest=_digest(token), expires_at=now + PERIOD)
    return f"{settings.BASE_URL}{reverse('admin:invitation')}?{urlencode({'token': token})}"


def invited_person(token: str, *, now: datetime) -> User:
    """The person whom the link is for. Raises InvitationGone."""
    found = (
        Invitation.objects.select_related("user").filter(digest=_digest(token), expires_at__gt=now).first()
    )
    if found is None or not found.user.is_active:
        raise InvitationGone
    person: User = found.user
    return person


def accept(person: User, token: str, form: Any, *, now: datetime) -> None:
    """Store the password of the valid form, once. Raises InvitationGone if another request was first."""
    with transaction.atomic():
        # One statement, so that of two requests with the same link one is refused.
        deleted, _ = Invitation.objects.filter(digest=_digest(token), expires_at__gt=now).delete()
        # An admin may take back the invitation in this moment.
        current = User.objects.select_for_update().get(pk=person.pk)
        if not deleted or not current.is_active:
            raise InvitationGone
        request_context.set_actor(subject_of(person))
        with recorded(Act.INVITATION_ACCEPTED, current):
            form.save()


def withdraw(person: User) -> None:
    """Make the link of this person useless, if there is one."""
    Invitation.objects.filter(user=person).delete()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
