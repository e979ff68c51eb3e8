"""The login of the company whose people use the console, by OpenID Connect.

allauth's pages take much from the address: another process, another callback. Ours give it only the page that
comes next, and whether its user must prove again who they are.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import requests
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from audit_trail import confirmation
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people.login_log import record_change, subject_of
from console.people.sign_in import WAITING_FORMS
from core import clock, request_context
from core.observing.security_log import SecurityEvent

PROVIDER = "company"  # its name in SOCIALACCOUNT_PROVIDERS
# In a session: its user may connect the account with which they come back.
CONNECTS = "connects_company"
# It asks its user again. With `max_age` it tells when it did (OpenID Connect Core 1.0, 2 and 3.1.2.1).
AGAIN, ONCE_A_DAY = "prompt=login&max_age=0", "max_age=86400"
# An answer that no provider should give.
FAULTS = (
    *(requests.RequestException, OAuth2Error, DatabaseError),
    *(ImproperlyConfigured, ValueError, TypeError, LookupError),
)
log = logging.getLogger("console")
View = Callable[..., HttpResponse]


def _guarded(view: View) -> View:
    """Say that the provider did not answer rightly, whatever it answered."""

    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            with transaction.atomic():
                return view(request, *args, **kwargs)
        except FAULTS as error:
            log.warning("The login of the company failed: %s", type(error).__name__)
            return render(request, "socialaccount/authentication_error.html", status=400)

    return page


@require_GET
@_guarded
def login_page(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Go to the company. Who is logged in already proves again who they are."""
    query = QueryDict(mutable=True)
    query["next"] = request.GET.get("next", "")
    query["auth_params"] = AGAIN if request.user.is_authenticated else ONCE_A_DAY
    request.GET = query  # type: ignore[assignment]
    answer: HttpResponse = views.login(request, provider_id)
    return answer


@require_GET
@_guarded
def callback_page(request: HttpRequest, provider_id: str) -> HttpResponse:
    person, waiting = request.user.pk, request.session.get(WAITING_FORMS)
    answer: HttpResponse = views.callback(request, provider_id)
    if waiting and person == request.user.pk:  # allauth begins another session
        request.session[WAITING_FORMS] = waiting
    return answer


@login_required
@require_POST
def connect_page(request: HttpRequest) -> HttpResponse:
    """Let this person log in with an account of the company from now on."""
    confirmation.require()
    request.session[CONNECTS] = request.user.pk
    login = reverse("openid_connect_login", args=[PROVIDER])
    return HttpResponseRedirect(f"{login}?next={reverse('mfa_index')}")


@login_required
@require_POST
def disconnect_page(request: HttpRequest) -> HttpResponse:
    person = User.objects.get(username=request.user.get_username())
    with recorded(Act.COMPANY_DISCONNECTED, person):
        SocialAccount.objects.filter(user=person).delete()
        record_change(SecurityEvent.SECOND_FACTOR_CHANGED, person, "-company")
    return HttpResponseRedirect(reverse("mfa_index"))


def connect(request: HttpRequest, login: Any) -> None:
    """Connect an account of the company that nobody here has.

    It belongs to a person who asked for it in this session, or to the only invited person with its proven
    address who has never logged in. So a colleague who changes an address becomes nobody else.
    """
    asked = request.session.pop(CONNECTS, None)
    if asked is not None and request.user.is_authenticated and request.user.pk == asked:
        found = User.objects.filter(pk=asked)
    else:
        proven = [each.email for each in login.email_addresses if each.verified and each.email]
        if not proven:
            return
        found = User.objects.filter(email__iexact=proven[0], last_login=None)
    taken = SocialAccount.objects.values("user")
    people = list(found.filter(is_active=True).exclude(pk__in=taken).select_for_update()[:2])
    if len(people) == 1:
        request_context.set_actor(subject_of(people[0]))
        with recorded(Act.COMPANY_CONNECTED, people[0]):
            login.connect(request, people[0])
            record_change(SecurityEvent.SECOND_FACTOR_CHANGED, people[0], "+company")


def note_proof(request: HttpRequest, login: Any) -> None:
    """Remember when the provider last saw its user. Without that, its answer proves nothing."""
    token = login.account.extra_data.get("id_token") or {}
    at = token.get("auth_time")
    is_time = isinstance(at, int) and at <= clock.now().timestamp() + 60
    request.proven_at = at if is_time else 0  # type: ignore[attr-defined]
