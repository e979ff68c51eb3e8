"""Too many wrong passwords or codes lock out a person, a browser or an address, until 15 minutes have passed.

allauth counts them in its cache, which is a table: a lockout works while Redis is away. ACCOUNT_RATE_LIMITS
has the numbers.
"""

from typing import Any

from allauth.core import ratelimit
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console import login
from core import client_addresses, request_context, security_log
from core.security_log import SecurityEvent

PASSWORDS, ADDRESSES, CODES = "password", "password_address", "login_failed"
UNKNOWN = "address:unknown"


class LiftForm(forms.Form):
    username = forms.CharField(label=gettext_lazy("Username"), max_length=150)
    reason = forms.CharField(label=gettext_lazy("Reason"), max_length=500)

    def clean_username(self) -> User:
        person = User.objects.filter(username=self.cleaned_data["username"]).first()
        if person is None:
            raise forms.ValidationError(_("Nobody has this user name."))
        return person


def count_attempt(request: HttpRequest, username: str) -> bool:
    """Count an attempt to give a password, before it is checked. False if there were too many."""
    subjects = (ADDRESSES, _address(request_context.current().address)), (PASSWORDS, _who(request, username))
    for action, subject in subjects:
        if not ratelimit.consume(request, action=action, key=subject):
            is_name = not subject.startswith("user:") or User.objects.filter(username=username).exists()
            security_log.record(SecurityEvent.LOCKOUT, subject=subject if is_name else "user:?")
            return False
    return True


def forget_attempts(request: HttpRequest, username: str) -> None:
    """After a right password. The address keeps its count: valid accounts must not hide guesses at others."""
    ratelimit.clear(request, action=PASSWORDS, key=_who(request, username))


def lift(request: HttpRequest, person: User) -> None:
    """Let this person try again at once, with any browser."""
    ratelimit.clear(request, action=PASSWORDS, key=f"user:{person.get_username()}")
    ratelimit.clear(request, action=CODES, key=f"mfa-auth-user-{person.pk}")  # allauth's key


def lift_address(network: str) -> bool:
    """network: such as 203.0.113.7 or 2001:db8::/64. False if it is none."""
    subject = _address(network.partition("/")[0])
    if subject == UNKNOWN:
        return False
    ratelimit.clear(HttpRequest(), action=ADDRESSES, key=subject)
    return True


def lift_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Lift the lockout of a colleague."""
    if not request.user.has_perm("console.lift_lockout"):
        raise PermissionDenied
    form = LiftForm(request.POST or None)
    if form.is_valid():
        person = form.cleaned_data["username"]
        with recorded(Act.LOCKOUT_LIFTED, person, reason=form.cleaned_data["reason"]):
            lift(request, person)
        text = _("%(name)s can log in again at once.") % {"name": person.get_username()}
        messages.success(request, text)
        return HttpResponseRedirect(reverse("mfa_index"))
    context = {**site.each_context(request), "title": _("Lift a lockout"), "form": form}
    return TemplateResponse(request, "admin/people/lift_lockout.html", context)


def _who(request: HttpRequest, username: str) -> str:
    device = login.device_of(request, username)
    return f"device:{device}" if device else f"user:{username}"


def _address(address: str) -> str:
    """An IPv6 client controls a whole /64, which counts as one address."""
    network = client_addresses.network_of(address, ipv6_bits=64)
    return f"address:{network}" if network else UNKNOWN
