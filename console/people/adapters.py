"""What this console does in another way than django-allauth: limits, sealed secrets, and who comes in."""

from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy

from console import page_limits
from console.people import lockouts, sign_in
from console.people.account_pages import browser_name
from core import request_context, security_log, vault
from core.security_log import SecurityEvent
from qrcodes import images

CONTEXT = "second_factor"  # of sealed secrets
COMPANY = "company"  # the name of the provider in SOCIALACCOUNT_PROVIDERS


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": page_limits.LOCKED_OUT,
        "incorrect_password": gettext_lazy("The password is wrong."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # staff are invited

    def get_client_ip(self, request: HttpRequest) -> str:
        return request_context.current().address or "::"

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """No messages: the pages show what changed."""

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        if not lockouts.count_attempt(request, credentials["username"]):
            raise self.validation_error("too_many_login_attempts")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is not None:
            lockouts.forget_attempts(request, credentials["username"])
            request.checked_user = credentials["username"]  # type: ignore[attr-defined]
        return user

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        return not sign_in.is_fresh(self.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """A second factor if there is one: a browser may know the password of an unattended screen."""
        methods = super().get_reauthentication_methods(user)
        company = reverse("openid_connect_login", args=[COMPANY])
        if not methods and settings.SOCIALACCOUNT_PROVIDERS:
            return [{"id": COMPANY, "description": "", "url": company}]
        return [each for each in methods if each["id"] != "reauthenticate"] or methods


class SecondFactorAdapter(DefaultMFAAdapter):
    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": gettext_lazy(
            "The code is wrong, or it was used before. Wait for the next code of the app."
        ),
    }

    def encrypt(self, text: str) -> str:
        return vault.seal(text, context=CONTEXT)

    def decrypt(self, encrypted_text: str) -> str:
        return vault.open_sealed(encrypted_text, context=CONTEXT)

    def get_totp_label(self, user: Any) -> str:
        """The host tells several services apart."""
        return f"{self.get_totp_issuer()}:{user.get_username()}"

    def get_totp_issuer(self) -> str:
        return urlsplit(settings.BASE_URL).hostname or ""

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        """Of a new passkey, until its owner writes another one."""
        return browser_name(self.request.META.get("HTTP_USER_AGENT", ""))

    def build_totp_svg(self, url: str) -> str:
        # Not by the cache of pictures: it would keep the secret in memory.
        return images.svg.__wrapped__(url).decode()


class CompanyAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Connect the account of the company with the invited person who has its proven address."""
        proven = [each.email for each in sociallogin.email_addresses if each.verified and each.email]
        if sociallogin.is_existing or not proven:
            return
        people = list(User.objects.filter(email__iexact=proven[0], is_active=True)[:2])
        if len(people) == 1:
            sociallogin.connect(request, people[0])

    def on_authentication_error(self, request: HttpRequest, provider: Any, **kwargs: Any) -> None:
        security_log.record(SecurityEvent.LOGIN_FAILED, subject="staff:?")
