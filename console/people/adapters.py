"""What this console does in another way than django-allauth: limits, sealed secrets, and who comes in."""

from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy

from console.people import company, lockouts, page_limits, sign_in
from console.people.account_pages import browser_name
from core import request_context, vault
from qrcodes import images

CONTEXT = "second_factor"  # of sealed secrets
# In a session that waits for its second step: what Django ends a session by, after a new password.
AUTH_HASH = "auth_hash"


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
        if not lockouts.may_try(request, credentials["username"]):
            raise self.validation_error("too_many_login_attempts")

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        lockouts.count_failure(request, credentials["username"])

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is not None:
            lockouts.forget_failures(request, credentials["username"])
            request.checked_user = credentials["username"]  # type: ignore[attr-defined]
        return user

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> Any:
        request.session[AUTH_HASH] = user.get_session_auth_hash()
        return super().pre_login(request, user, **kwargs)

    def login(self, request: HttpRequest, user: Any) -> None:
        """Refuse a login whose password was changed while it waited for the second step."""
        user.refresh_from_db()
        begun_with = request.session.pop(AUTH_HASH, "")
        if begun_with not in {user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()}:
            raise ImmediateHttpResponse(HttpResponseRedirect(reverse("account_login")))
        super().login(request, user)

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        return not sign_in.is_fresh(self.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """A second factor if there is one: a browser may know the password of an unattended screen."""
        methods = [
            {**each, "description": gettext_lazy("Use a passkey")} if "webauthn" in each["id"] else each
            for each in super().get_reauthentication_methods(user)
        ]
        strong = [each for each in methods if each["id"] != "reauthenticate"]
        if strong or not settings.SOCIALACCOUNT_PROVIDERS:
            return strong or methods
        if not SocialAccount.objects.filter(user=user).exists():
            return methods
        url = reverse("openid_connect_login", args=[company.PROVIDER])
        return [{"id": company.PROVIDER, "description": "", "url": url}]


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
        if not sociallogin.is_existing:
            company.connect(request, sociallogin)
        company.note_proof(request, sociallogin)
