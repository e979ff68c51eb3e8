"""A passkey is a second step as the app is. Its signature is for one session, one host and one time."""

import json
from random import Random
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from console.models import SignInLimit
from tests.authenticator_app import CODE, codes_on, enrolled, set_up
from tests.console.people.test_confirmations import asked, make_stale
from tests.console.people.test_second_factor import after_password, colleague
from tests.examples import examples
from tests.security_key import SecurityKey, options_on, text
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

ACCOUNT, ADD, NEW_CODES = "/admin/account/", "/admin/account/passkeys/add/", "/admin/account/recovery-codes/"
BY_PASSKEY, FAILURES = "/admin/confirm/passkey/", 5
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def somsri() -> User:
    return colleague("somsri")


@pytest.fixture
def client(somsri: User) -> Client:
    """A session of somsri, who has an app."""
    client = after_password(somsri)
    set_up(client)
    return client


@pytest.fixture
def key(client: Client) -> SecurityKey:
    made = SecurityKey()
    assert add(client, made).headers["Location"] == ACCOUNT
    return made


def passkeys() -> Any:
    return Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN)


def removal() -> str:
    return f"/admin/account/passkeys/{passkeys().get().pk}/remove/"


def add(client: Client, key: SecurityKey, name: str = "Laptop") -> Any:
    options = options_on(client.get(ADD).content.decode())
    return client.post(ADD, {"name": name, "credential": key.create(options)})


def challenge(client: Client) -> dict[str, Any]:
    return options_on(client.get(CODE).content.decode())


def answer(client: Client, passkey: str) -> bool:
    """Whether the console accepts the answer."""
    given = client.post(CODE, {"credential": passkey})
    assert given.status_code in (200, 302, 400)
    assert (given.status_code == 302) == (client.get("/admin/").status_code == 200)
    return bool(given.status_code == 302)


def test_passkey_completes_the_login(
    somsri: User, key: SecurityKey, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        client = after_password(somsri)
        options = challenge(client)
        assert [each["id"] for each in options["allowCredentials"]] == [text(key.id)]
        assert answer(client, key.get(options))
    assert [line["code"] for line in security_lines(caplog, "second_factor_accepted")] == ["webauthn"] * 2
    assert "last used" in client.get(ACCOUNT).content.decode()


def test_answer_works_once_and_in_its_session(somsri: User, key: SecurityKey) -> None:
    one, other = after_password(somsri), after_password(somsri)
    given = key.get(challenge(one))
    challenge(other)
    assert not answer(other, given)
    assert answer(one, given)
    again = after_password(somsri)
    assert not answer(again, given), "without a challenge"


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "https://testserver.evil.example"},
        {"origin": "http://testserver"},
        {"host": "evil.example"},
        {"key": SecurityKey().key},
        {"id": b"another passkey"},
    ],
)
def test_answer_of_a_false_page_or_key_is_refused(
    somsri: User, key: SecurityKey, changes: dict[str, Any]
) -> None:
    client = after_password(somsri)
    options = challenge(client)
    assert not answer(client, SecurityKey(**{**vars(key), **changes}).get(options))


def test_passkey_of_somebody_else_is_refused(somsri: User, key: SecurityKey) -> None:
    malee = colleague("malee")
    add(after_password(malee), SecurityKey())
    client = after_password(malee)
    assert not answer(client, key.get(challenge(client)))


def test_challenge_of_a_login_makes_no_passkey(client: Client, key: SecurityKey) -> None:
    options = options_on(client.get(ADD).content.decode())
    assert client.post(ADD, {"name": "x", "credential": key.get(options)}).status_code == 200
    assert client.post(ADD, {"name": "x", "credential": SecurityKey().create(options)}).status_code == 200
    assert passkeys().count() == 1


@pytest.mark.parametrize("name", ["id", "rawId", "type", "response", "clientDataJSON", "authenticatorData",
                                  "signature", "attestationObject"])  # fmt: skip
def test_malformed_answers_are_refused(somsri: User, key: SecurityKey, name: str) -> None:
    """Also those that a browser never sends: no answer is a fault of the server.

    Each field gets some of the values, or all with EXAMPLES_FACTOR=1.
    """
    values: list[Any] = [None, "", "x", 7, [], {}, "AAAA", "ก", "\0", "%%%%"]
    for value in Random(name).sample(values, examples(len(values))):
        check_malformed_answer(somsri, key, name, value)


def check_malformed_answer(somsri: User, key: SecurityKey, name: str, value: Any) -> None:
    SignInLimit._default_manager.all().delete()

    def broken(given: str) -> str:
        fields = json.loads(given)
        place = fields if name in fields else fields["response"]
        place[name] = value
        return json.dumps(fields)

    client = after_password(somsri)
    given = key.get(challenge(client))
    if name not in ("attestationObject", "rawId", "type") and broken(given) != given:
        assert not answer(client, broken(given)), value
    set_by = after_password(somsri)
    answer(set_by, key.get(challenge(set_by)))
    made = SecurityKey().create(options_on(set_by.get(ADD).content.decode()))
    if name not in ("authenticatorData", "signature", "rawId", "type", "id"):
        assert set_by.post(ADD, {"name": "x", "credential": broken(made)}).status_code in (200, 400)
        assert passkeys().count() == 1


MALFORMED = ["", "{}", "[]", "null", "7", '"x"', "{" * 1000, "[" * 3000, "x" * 30_000, "9" * 5000,
             '"\\ud800"', '{"id": 1}']  # fmt: skip


@pytest.mark.parametrize("given", MALFORMED)
def test_answers_that_are_no_json_object_are_refused(somsri: User, key: SecurityKey, given: str) -> None:
    client = after_password(somsri)
    challenge(client)
    assert not answer(client, given)
    inside = after_password(somsri)
    assert answer(inside, key.get(challenge(inside)))
    for page in (ADD, BY_PASSKEY):
        inside.get(page)
        assert inside.post(page, {"name": "x", "credential": given}).status_code in (200, 302, 400)
    assert passkeys().count() == 1


def test_wrong_passkeys_count_as_wrong_codes(somsri: User, key: SecurityKey) -> None:
    for _ in range(FAILURES):
        client = after_password(somsri)
        challenge(client)
        assert not answer(client, SecurityKey(id=key.id).get(challenge(client)))
    client = after_password(somsri)
    assert not answer(client, key.get(challenge(client)))


def test_passkey_alone_is_a_second_step_with_recovery_codes(somsri: User, settings: Settings) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client, key = after_password(somsri), SecurityKey()
    assert add(client, key).headers["Location"] == NEW_CODES
    assert len(codes_on(client.get(NEW_CODES).content.decode())) == 10
    assert client.get("/admin/").status_code == 200
    other = after_password(somsri)
    assert answer(other, key.get(challenge(other)))


def test_guesser_with_the_password_adds_no_passkey_beside_the_one_of_the_owner(
    somsri: User, settings: Settings
) -> None:
    """Their session is from before the owner set up the second step, in another request at the same time."""
    settings.REQUIRE_TWO_FACTOR = True
    guesser = after_password(somsri)
    options = options_on(guesser.get(ADD).content.decode())
    enrolled(somsri)
    given = guesser.post(ADD, {"name": "x", "credential": SecurityKey().create(options)})
    assert given.headers["Location"] == "/admin/login/"
    assert not passkeys().exists()


def test_passkey_before_the_second_step_is_not_added(somsri: User, key: SecurityKey) -> None:
    for sent in (after_password(somsri).get(ADD), after_password(somsri).post(ADD, {"name": "x"})):
        assert sent.headers["Location"].startswith("/admin/login/")
    assert passkeys().count() == 1


def test_passkeys_are_changed_only_after_a_confirmation(client: Client, key: SecurityKey) -> None:
    make_stale(client)
    assert asked(client.get(ADD))
    assert asked(client.post(removal()))
    assert passkeys().exists()


def test_passkey_is_removed_and_both_are_recorded(client: Client, somsri: User, key: SecurityKey) -> None:
    assert client.get(removal()).status_code == 200
    assert client.post(removal()).headers["Location"] == "/admin/account/passkeys/"
    assert not passkeys().exists()
    assert "passkey-use" not in after_password(somsri).get(CODE).content.decode()
    added, removed = acts_of_staff().filter(act__startswith="passkey")
    assert (added.after, removed.act) == ({"passkey": "Laptop"}, "passkey_removed")


def test_passkey_of_somebody_else_is_not_removed(key: SecurityKey) -> None:
    theirs = after_password(colleague("malee"))
    assert theirs.post(removal()).status_code == 404
    assert passkeys().exists()


def test_passkey_answers_the_question_before_an_act(
    client: Client, key: SecurityKey, caplog: pytest.LogCaptureFixture
) -> None:
    question = make_stale(client).get(ADD)
    assert BY_PASSKEY in client.get(question.headers["Location"]).content.decode()
    page = f"{BY_PASSKEY}?next={ADD}"
    given = key.get(options_on(client.get(page).content.decode()))
    confirmed = client.post(page, {"credential": given})
    assert (confirmed.status_code, confirmed.headers["Location"]) == (302, ADD)
    assert not asked(client.get(ADD))
    assert security_lines(caplog, "second_factor_accepted")[-1]["code"] == "webauthn"
    make_stale(client)
    assert client.post(page, {"credential": given}).status_code in (200, 302)
    assert asked(client.get(ADD)), "the challenge was used"


def test_question_offers_no_passkey_to_people_without_one(client: Client) -> None:
    question = make_stale(client).get(ADD)
    assert BY_PASSKEY not in client.get(question.headers["Location"]).content.decode()
