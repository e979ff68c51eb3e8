"""A passkey is a second step beside the app. Its signature is for one session, one host and one time."""

import json
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import Client

from console.models import Passkey
from console.people import second_factors
from tests.authenticator_app import CODE, set_up
from tests.console.test_confirmations import asked, make_stale
from tests.examples import examples
from tests.security_key import SecurityKey, options_on
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

ACCOUNT, ADD, REMOVE = "/admin/account/", "/admin/account/passkey/", "/admin/account/remove-passkey/"
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def somsri() -> User:
    return User.objects.create_user("somsri", is_staff=True)


@pytest.fixture
def client(somsri: User) -> Client:
    """A complete session of somsri, who has an app."""
    client = after_password(somsri)
    set_up(client)
    return client


@pytest.fixture
def key(client: Client) -> SecurityKey:
    made = SecurityKey()
    assert add(client, made).status_code == 302
    return made


def after_password(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def add(client: Client, key: SecurityKey, name: str = "Laptop") -> Any:
    options = options_on(client.get(ADD).content.decode())
    return client.post(ADD, {"name": name, "passkey": key.create(options)})


def challenge(client: Client) -> dict[str, Any]:
    return options_on(client.get(CODE).content.decode())


def answer(client: Client, passkey: str) -> bool:
    """Whether the console accepts the answer."""
    given = client.post(CODE, {"passkey": passkey})
    assert given.status_code in (200, 302)
    assert (given.status_code == 302) == (client.get("/admin/").status_code == 200)
    return bool(given.status_code == 302)


def test_passkey_completes_the_login(
    somsri: User, key: SecurityKey, caplog: pytest.LogCaptureFixture
) -> None:
    for count in (1, 2):
        client = after_password(somsri)
        options = challenge(client)
        assert [each["id"] for each in options["allowCredentials"]] == [Passkey.objects.get().credential_id]
        assert answer(client, key.get(options))
        assert Passkey.objects.get().sign_count == count
    assert [line["code"] for line in security_lines(caplog, "second_factor_accepted")] == ["passkey"] * 2
    assert "last used" in client.get(ACCOUNT).content.decode()


def test_passkey_that_does_not_count_completes_the_login(somsri: User, client: Client) -> None:
    key = SecurityKey(counts=False)
    add(client, key)
    for _ in range(2):
        other = after_password(somsri)
        assert answer(other, key.get(challenge(other)))


def test_answer_works_once_and_in_its_session(somsri: User, key: SecurityKey) -> None:
    one, other = after_password(somsri), after_password(somsri)
    given = key.get(challenge(one))
    challenge(other)
    assert not answer(other, given)
    assert answer(one, given)
    again = after_password(somsri)
    assert not answer(again, given), "without a challenge"


def test_refused_answer_needs_a_new_challenge(somsri: User, key: SecurityKey) -> None:
    client = after_password(somsri)
    options = challenge(client)
    assert not answer(client, "x")
    assert not answer(client, key.get(options))
    assert answer(client, key.get(challenge(client)))


def test_copied_security_key_is_refused(somsri: User, key: SecurityKey) -> None:
    client = after_password(somsri)
    assert answer(client, key.get(challenge(client)))
    key.sign_count -= 1
    copied = after_password(somsri)
    assert not answer(copied, key.get(challenge(copied)))


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
    malee = User.objects.create_user("malee", is_staff=True)
    theirs = after_password(malee)
    set_up(theirs)
    add(theirs, SecurityKey())
    client = after_password(malee)
    assert not answer(client, key.get(challenge(client)))


def test_challenge_of_a_login_makes_no_passkey(somsri: User, client: Client, key: SecurityKey) -> None:
    options = options_on(client.get(ADD).content.decode())
    assert client.post(ADD, {"name": "x", "passkey": key.get(options)}).status_code == 200
    assert client.post(ADD, {"name": "x", "passkey": SecurityKey().create(options)}).status_code == 200
    assert Passkey.objects.count() == 1


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

    def broken(given: str) -> str:
        fields = json.loads(given)
        place = fields if name in fields else fields["response"]
        place[name] = value
        return json.dumps(fields)

    client = after_password(somsri)
    given = key.get(challenge(client))
    if name != "attestationObject" and json.loads(broken(given)) != json.loads(given):
        assert not answer(client, broken(given))
    set_by = after_password(somsri)
    answer(set_by, key.get(challenge(set_by)))
    made = SecurityKey().create(options_on(set_by.get(ADD).content.decode()))
    if name not in ("authenticatorData", "signature"):
        assert set_by.post(ADD, {"name": "x", "passkey": broken(made)}).status_code == 200
        assert Passkey.objects.count() == 1


@pytest.mark.parametrize("given", ["", "{}", "[]", "null", "7", '"x"', "{" * 1000, "x" * 30_000, "\ud800"])
def test_answers_that_are_no_json_object_are_refused(somsri: User, key: SecurityKey, given: str) -> None:
    client = after_password(somsri)
    challenge(client)
    assert not answer(client, given.encode(errors="replace").decode())


def test_wrong_passkeys_count_as_wrong_codes(somsri: User, key: SecurityKey) -> None:
    for _ in range(second_factors.FAILURES_PER_USER):
        assert not answer(after_password(somsri), "x")
    client = after_password(somsri)
    given = key.get(challenge(client))
    assert client.post(CODE, {"passkey": given}).status_code == 429


def test_passkey_needs_an_app_first(somsri: User) -> None:
    client = after_password(somsri)
    assert client.get(ADD).headers["Location"] == ACCOUNT
    assert client.post(ADD, {"name": "x", "passkey": "x"}).headers["Location"] == ACCOUNT


def test_passkey_before_the_second_step_is_not_added(somsri: User, key: SecurityKey) -> None:
    assert after_password(somsri).get(ADD).status_code == 302
    assert after_password(somsri).post(ADD, {"name": "x", "passkey": "x"}).status_code == 302
    assert Passkey.objects.count() == 1


def test_passkeys_are_changed_only_after_a_confirmation(client: Client, key: SecurityKey) -> None:
    make_stale(client)
    assert asked(client.get(ADD))
    assert asked(client.post(REMOVE, {"id": str(Passkey.objects.get().pk)}))
    assert Passkey.objects.exists()


def test_passkey_is_removed(client: Client, somsri: User, key: SecurityKey) -> None:
    for wrong in ("", "x", "0", "9" * 30):
        client.post(REMOVE, {"id": wrong})
    assert Passkey.objects.exists()
    client.post(REMOVE, {"id": str(Passkey.objects.get().pk)})
    assert not Passkey.objects.exists()
    assert "data-passkey" not in after_password(somsri).get(CODE).content.decode()


def test_passkey_of_somebody_else_is_not_removed(key: SecurityKey) -> None:
    theirs = after_password(User.objects.create_user("malee", is_staff=True))
    theirs.post(REMOVE, {"id": str(Passkey.objects.get().pk)})
    assert Passkey.objects.exists()


def test_new_app_removes_passkeys(client: Client, key: SecurityKey) -> None:
    set_up(client)
    assert not Passkey.objects.exists()


def test_passkeys_are_recorded(client: Client, key: SecurityKey) -> None:
    client.post(REMOVE, {"id": str(Passkey.objects.get().pk)})
    added, removed = acts_of_staff().filter(act__startswith="passkey")
    assert (added.act, added.after, removed.act) == (
        "passkey_added",
        {"passkey": "Laptop"},
        "passkey_removed",
    )


@pytest.mark.parametrize("change", ["public_key = 'x'", "sign_count = -1", "user_id = user_id + 1"])
def test_database_refuses_other_changes_of_a_passkey(key: SecurityKey, change: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE console_passkey SET {change}")


def question_options(client: Client) -> dict[str, Any]:
    """What the question "Is it you?" asks the browser for."""
    question = client.get(ADD)
    assert asked(question)
    return options_on(question.content.decode())


def confirm(client: Client, passkey: str, **fields: str) -> Any:
    return client.post(ADD, {"confirmation_passkey": passkey, "confirmation_only": "1", **fields})


def test_passkey_answers_the_question_before_an_act(
    client: Client, key: SecurityKey, caplog: pytest.LogCaptureFixture
) -> None:
    options = question_options(make_stale(client))
    assert [each["id"] for each in options["allowCredentials"]] == [Passkey.objects.get().credential_id]
    confirmed = confirm(client, key.get(options))
    assert (confirmed.status_code, confirmed.headers["Location"]) == (302, ADD)
    assert not asked(client.get(ADD))
    assert security_lines(caplog, "second_factor_accepted")[-1]["code"] == "passkey"


def test_question_accepts_a_passkey_once_and_only_of_this_person(client: Client, key: SecurityKey) -> None:
    given = key.get(question_options(make_stale(client)))
    assert not asked(confirm(client, given))
    assert asked(confirm(make_stale(client), given)), "the challenge was used"
    other = after_password(User.objects.create_user("prasit", is_staff=True))
    set_up(other)
    theirs = SecurityKey()
    add(other, theirs)
    refused = confirm(make_stale(client), theirs.get(question_options(client)))
    assert asked(refused)
    assert "The passkey was not accepted." in refused.content.decode()
    assert asked(client.get(ADD))


def test_question_repeats_the_form_for_a_passkey_too(client: Client, key: SecurityKey) -> None:
    """A new passkey whose form waited too long: its own challenge is still good after the question."""
    second, options = SecurityKey(), options_on(client.get(ADD).content.decode())
    filled = {"name": "Phone", "passkey": second.create(options)}
    question = make_stale(client).post(ADD, filled).content.decode()
    assert question.count('name="name" value="Phone"') == 2
    given = key.get(options_on(question))
    assert client.post(ADD, {**filled, "confirmation_passkey": given}).status_code == 302
    assert Passkey.objects.count() == 2


def test_question_offers_no_passkey_to_people_without_one(client: Client) -> None:
    question = make_stale(client).get(ADD).content.decode()
    assert "data-passkey" not in question
    assert asked(confirm(client, "x"))


def test_wrong_passkeys_at_the_question_lock_out(client: Client, key: SecurityKey) -> None:
    make_stale(client)
    for _ in range(second_factors.FAILURES_PER_USER):
        assert asked(confirm(client, "x"))
    assert confirm(client, key.get(question_options(client))).status_code == 429
