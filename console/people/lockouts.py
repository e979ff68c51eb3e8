"""Too many wrong passwords or codes lock out a person, a browser or an address, until 15 minutes have passed.

allauth counts them in its cache, which is a table: a lockout works while Redis is away. ACCOUNT_RATE_LIMITS
has the numbers.
"""

from typing import Any

from allauth.core import ratelimit
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import login
from core import request_context
from core.console import sites
from core.http import client_addresses
from core.observing import security_log
from core.observing.security_log import SecurityEvent

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


def may_try(request: HttpRequest, username: str) -> bool:
    """Whether a password may be checked. The attempt counts at once, so many at once stay in the limit."""
    if not ratelimit.consume(request, action=ADDRESSES, key=_address_of_request(), dry_run=True):
        return False
    return bool(ratelimit.consume(request, action=PASSWORDS, key=_who(request, username)))


def count_failure(request: HttpRequest, username: str) -> None:
    """Count a wrong password for the address too. Who reaches a limit is in the security log once."""
    ratelimit.consume(request, action=ADDRESSES, key=_address_of_request())
    log_if_reached(request, ADDRESSES, _address_of_request(), _address_of_request())
    who = _who(request, username)
    # An unknown name may be a password in the wrong field.
    is_known = User.objects.filter(username=username).exists()
    log_if_reached(request, PASSWORDS, who, who if is_known else "user:?")


def log_if_reached(request: HttpRequest, action: str, key: str, subject: str) -> None:
    if not ratelimit.consume(request, action=action, key=key, dry_run=True):
        security_log.record(SecurityEvent.LOCKOUT, subject=subject)


def forget_failures(request: HttpRequest, username: str) -> None:
    """After a right password. The address keeps its count: valid accounts must not hide guesses at others."""
    ratelimit.clear(request, action=PASSWORDS, key=_who(request, username))


def key_of_codes(person: Any) -> str:
    return f"mfa-auth-user-{person.pk}"  # allauth's


def lift(request: HttpRequest, person: User) -> None:
    """Let this person try again at once, with any browser."""
    for kind in ("user", "device"):
        ratelimit.clear(request, action=PASSWORDS, key=f"{kind}:{person.get_username()}")
    ratelimit.clear(request, action=CODES, key=key_of_codes(person))


def lift_address(network: str) -> bool:
    """network: such as 203.0.113.7 or 2001:db8::/64. False if it is none."""
    address = network.partition("/")[0]
    if _address(address) == UNKNOWN:
        return False
    ratelimit.clear(HttpRequest(), action=ADDRESSES, key=_address(address))
    # allauth counts the requests of a minute by the address of the request.
    now = request_context.current()
    request_context.begin(actor=now.actor, request_id=now.request_id, address=address)
    ratelimit.clear(HttpRequest(), action="login")
    return True


@permission_required("console.lift_lockout", raise_exception=True)
def lift_page(request: HttpRequest) -> HttpResponse:
    form = LiftForm(request.POST or None)
    if form.is_valid():
        person = form.cleaned_data["username"]
        with recorded(Act.LOCKOUT_LIFTED, person, reason=form.cleaned_data["reason"]):
            lift(request, person)
        text = _("%(name)s can log in again at once.") % {"name": person.get_username()}
        messages.success(request, text)
        return HttpResponseRedirect(reverse("mfa_index"))
    return sites.page(request, "admin/people/lift_lockout.html", _("Lift a lockout"), form=form)


def _who(request: HttpRequest, username: str) -> str:
    """The browsers in which a person logged in before have a count of their own, all together."""
    return f"{'device' if login.is_known_device(request, username) else 'user'}:{username}"


def _address_of_request() -> str:
    return _address(request_context.current().address)


def _address(address: str) -> str:
    """An IPv6 client controls a whole /64, which counts as one address."""
    network = client_addresses.network_of(address, ipv6_bits=64)
    return f"address:{network}" if network else UNKNOWN
