"""The pages of django-allauth that staff need, below the address of the console, by the names of allauth."""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from django.urls import path, re_path

from console.people import company, sign_in
from console.people.account_pages import AppView, account_page, end_sessions_page, with_record

REMOVE_PASSKEY = with_record(webauthn.remove_webauthn)
urlpatterns = [
    path("login/", account.login, name="account_login"),
    path("logout/", account.logout, name="account_logout"),
    path("login/closed/", account.account_inactive, name="account_inactive"),
    path("login/code/", mfa.authenticate, name="mfa_authenticate"),
    re_path("^login/(?P<provider_id>company)/$", company.login_page, name="openid_connect_login"),
    re_path("^login/(?P<provider_id>company)/done/$", company.callback_page, name="openid_connect_callback"),
    path("login/company/canceled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("confirm/passkey/", webauthn.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("confirm/go-on/<str:name>/", sign_in.go_on_page, name="go_on"),
    path("account/", account_page, name="mfa_index"),
    path("account/end-sessions/", end_sessions_page, name="account_end_sessions"),
    path("account/app/", with_record(AppView.as_view()), name="mfa_activate_totp"),
    path("account/app/remove/", with_record(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("account/company/", company.connect_page, name="company_connect"),
    path("account/company/remove/", company.disconnect_page, name="company_disconnect"),
    path("account/passkeys/", account_page, name="mfa_list_webauthn"),
    path("account/passkeys/add/", with_record(webauthn.add_webauthn), name="mfa_add_webauthn"),
    path("account/passkeys/<int:pk>/remove/", REMOVE_PASSKEY, name="mfa_remove_webauthn"),
    path("account/recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "account/recovery-codes/new/",
        with_record(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
]
