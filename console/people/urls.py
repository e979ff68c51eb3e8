"""The pages of django-allauth that staff need, below the address of the console, by the names of allauth."""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as company
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.urls import path

from console.people.account_pages import account_page, end_sessions_page, with_record

urlpatterns = [
    path("login/", account.login, name="account_login"),
    path("logout/", account.logout, name="account_logout"),
    path("login/code/", mfa.authenticate, name="mfa_authenticate"),
    path("login/<str:provider_id>/", openid_connect.login, name="openid_connect_login"),
    path("login/<str:provider_id>/done/", openid_connect.callback, name="openid_connect_callback"),
    path("login/error/", company.login_error, name="socialaccount_login_error"),
    path("login/canceled/", company.login_cancelled, name="socialaccount_login_cancelled"),
    path("confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("confirm/passkey/", webauthn.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("account/", account_page, name="mfa_index"),
    path("account/end-sessions/", end_sessions_page, name="account_end_sessions"),
    path("account/app/", with_record(totp.activate_totp), name="mfa_activate_totp"),
    path("account/app/remove/", with_record(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("account/passkeys/", account_page, name="mfa_list_webauthn"),
    path("account/passkeys/add/", with_record(webauthn.add_webauthn), name="mfa_add_webauthn"),
    path(
        "account/passkeys/<int:pk>/remove/", with_record(webauthn.remove_webauthn), name="mfa_remove_webauthn"
    ),
    path("account/recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "account/recovery-codes/new/",
        with_record(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
]
