"""The login of a company: who comes in, and what its answers prove. The provider's answers are made up here.

`tests/systems/browser/test_company_log_in.py` has a real provider.
"""

from datetime import timedelta
from typing import Any

import pytest
import requests
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.openid_connect import views
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from core import clock as our_clock
from tests.console.people.test_confirmations import asked, make_stale
from tests.console.people.test_second_factor import PASSWORD, after_password, colleague, reset
from tests.staff_acts import acts_of_staff

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
LOGIN, DONE = "/admin/login/company/", "/admin/login/company/done/"
HOME, ACCOUNT, REFUNDS = "/admin/", "/admin/account/", "/admin/account/recovery-codes/new/"
ISSUER = "https://login.shop.example"


@pytest.fixture(autouse=True)
def provider(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A configured provider, and the claims with which it answers."""
    app = {"provider_id": "company", "name": "Shop", "client_id": "x", "secret": "y"}
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"APPS": [app | {"settings": {"server_url": ISSUER}}]}
    }
    claims: dict[str, Any] = {"sub": "1", "email": "somsri@shop.example", "email_verified": True}
    config = {"authorization_endpoint": f"{ISSUER}/auth", "token_endpoint": "", "userinfo_endpoint": ""}
    adapter = views.OpenIDConnectOAuth2Adapter
    monkeypatch.setattr(adapter, "openid_config", config)
    monkeypatch.setattr(adapter, "get_access_token_data", lambda *args, **kwargs: {"access_token": "t"})

    def complete_login(self: Any, request: Any, app: Any, token: Any, **kwargs: Any) -> SocialLogin:
        shown = {"userinfo": claims, "id_token": {"auth_time": claims.get("auth_time")}}
        found: SocialLogin = self.get_provider().sociallogin_from_response(request, shown)
        return found

    monkeypatch.setattr(adapter, "complete_login", complete_login)
    return claims


@pytest.fixture
def somsri() -> User:
    """Invited, without a password."""
    user = User.objects.create_user("somsri", "somsri@shop.example", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_payment"))
    return user


def come_back(client: Client, query: str = "") -> Any:
    """Go to the provider, and come back with its answer."""
    there = client.get(f"{LOGIN}?{query}")
    assert there.status_code == 302, there.content
    state = there.headers["Location"].partition("state=")[2].partition("&")[0]
    answer = client.get(f"{DONE}?code=c&state={state}")
    while answer.status_code == 200 and b"refresh" in answer.content:  # to get its cookie from our own page
        answer = client.get(f"{DONE}?code=c&state={state}&_redir")
    return answer


def is_inside(client: Client) -> bool:
    return client.get(HOME).status_code == 200


def test_invited_person_with_the_proven_address_comes_in(somsri: User, settings: Settings) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client = Client()
    assert come_back(client).headers["Location"] == HOME
    assert is_inside(client)
    record = acts_of_staff().get()
    assert (record.act, record.object_id, record.actor) == (
        "company_connected",
        str(somsri.pk),
        "staff:somsri",
    )
    come_back(another := Client())
    assert is_inside(another)


@pytest.mark.parametrize(
    "changes", [{"email_verified": False}, {"email": "malee@shop.example"}, {"email": ""}, {"email": None}]
)
def test_others_do_not_come_in(somsri: User, provider: dict[str, Any], changes: dict[str, Any]) -> None:
    provider.update(changes)
    client = Client()
    assert "Nobody here has the address" in come_back(client).content.decode()
    assert not is_inside(client)
    assert not SocialAccount.objects.exists()


def test_two_people_with_one_address_do_not_come_in(somsri: User) -> None:
    User.objects.create_user("malee", "Somsri@shop.example", is_staff=True)
    come_back(client := Client())
    assert not is_inside(client)


def test_changed_address_of_a_colleague_makes_nobody_somebody_else(
    somsri: User, provider: dict[str, Any]
) -> None:
    """Not of one who is connected, and not of one who logs in with a password."""
    come_back(Client())
    malee = colleague("malee")
    after_password(malee)
    provider.update(sub="2", email="second@shop.example")
    for person in (somsri, malee):
        User.objects.filter(pk=person.pk).update(email="second@shop.example")
        come_back(client := Client())
        assert not is_inside(client)
        User.objects.filter(pk=person.pk).update(email="")


def test_closed_person_does_not_come_in(somsri: User) -> None:
    come_back(Client())
    User.objects.update(is_active=False)
    answer = come_back(client := Client())
    assert answer.headers["Location"] == "/admin/login/closed/"
    assert client.get(answer.headers["Location"]).status_code == 200
    assert not is_inside(client)


@pytest.mark.parametrize("query", ["process=connect", "process=redirect&next=/admin/", "process=x"])
def test_address_cannot_choose_another_process(somsri: User, query: str) -> None:
    malee = colleague("malee")
    client = after_password(malee)
    come_back(client, query)
    assert not SocialAccount.objects.filter(user=malee).exists()


def test_address_cannot_choose_parameters_of_the_provider(somsri: User) -> None:
    there = Client().get(f"{LOGIN}?auth_params=redirect_uri%3Dhttps%3A%2F%2Fevil.example&scope=x")
    assert "evil.example" not in there.headers["Location"]
    assert "max_age=86400" in there.headers["Location"]


def test_colleague_connects_and_disconnects_the_company(provider: dict[str, Any]) -> None:
    malee = colleague("malee")
    client = after_password(malee)
    assert asked(make_stale(client).post("/admin/account/company/"))
    client = after_password(malee)
    assert client.post("/admin/account/company/").headers["Location"].startswith(LOGIN)
    assert come_back(client, f"next={ACCOUNT}").headers["Location"] == ACCOUNT
    assert "Connected since" in client.get(ACCOUNT).content.decode()
    come_back(other := Client())
    assert is_inside(other)
    client = after_password(malee)
    client.post("/admin/account/company/remove/")
    come_back(gone := Client())
    assert not is_inside(gone)
    acts = ["company_connected", "company_disconnected"]
    assert [record.act for record in acts_of_staff()] == acts


def test_reset_of_the_second_step_disconnects_the_company(somsri: User) -> None:
    come_back(Client())
    assert reset(admin(), somsri).status_code == 302
    assert not SocialAccount.objects.exists()


def test_change_of_the_address_disconnects_the_company(somsri: User) -> None:
    come_back(Client())
    form = {"is_active": "on", "is_staff": "on", "email": "second@shop.example"}
    joined = somsri.date_joined
    form |= {"date_joined_0": f"{joined:%Y-%m-%d}", "date_joined_1": f"{joined:%H:%M:%S}"}
    assert admin().post(f"/admin/auth/user/{somsri.pk}/change/", form).status_code == 302
    assert not SocialAccount.objects.exists()


def admin() -> Client:
    user = User.objects.create_superuser("admin", password=PASSWORD)
    return after_password(user)


@pytest.mark.parametrize(
    ("seconds", "is_proof"), [(0, True), (-599, True), (-601, False), (3600, False), (None, False)]
)
def test_company_proves_who_somebody_is_only_by_a_recent_time(
    clock: Any, somsri: User, provider: dict[str, Any], seconds: int | None, is_proof: bool
) -> None:
    if seconds is not None:
        provider["auth_time"] = int(our_clock.now().timestamp()) + seconds
    come_back(client := Client())
    assert asked(client.get(REFUNDS)) != is_proof


def test_question_leads_to_the_company_which_asks_again(somsri: User, provider: dict[str, Any]) -> None:
    come_back(client := Client())
    question = client.get(REFUNDS)
    assert question.headers["Location"].startswith(f"{LOGIN}?next=")
    there = client.get(question.headers["Location"])
    assert "prompt=login" in there.headers["Location"]
    assert "max_age=0" in there.headers["Location"]


def test_form_goes_on_after_the_company(somsri: User, provider: dict[str, Any]) -> None:
    come_back(client := Client())
    question = client.post("/admin/account/company/remove/")
    assert asked(question)
    provider["auth_time"] = int((our_clock.now() + timedelta(seconds=1)).timestamp())
    query = question.headers["Location"].partition("?")[2]
    onward = come_back(client, query).headers["Location"]
    client.get(onward)
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize(
    "claims",
    [{"sub": ""}, {"sub": "x" * 1000}, {"sub": "\0"}, {"sub": None}, {"email": ["x"]}, {"email": "\0@x"},
     {"given_name": {"a": 1}}, {"preferred_username": 7}, {"sub": "\ud800"}],
)  # fmt: skip
def test_odd_answers_of_the_provider_are_no_fault_of_ours(
    somsri: User, provider: dict[str, Any], claims: dict[str, Any]
) -> None:
    provider.update(claims)
    assert come_back(Client()).status_code in (200, 302, 400)


def test_provider_that_is_away_gets_a_page(somsri: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> Any:
        raise requests.ConnectionError

    monkeypatch.setattr(views.OpenIDConnectOAuth2Adapter, "openid_config", property(fail))
    page = Client().get(LOGIN)
    assert (page.status_code, "did not confirm who you are" in page.content.decode()) == (400, True)
    assert Client().get("/admin/login/company/canceled/").status_code == 200
