"""The receivers in docs/examples accept what the service sends and refuse everything else."""

import base64
from collections.abc import Iterator

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import ShopClient, registered
from tests.flows.examples import BODY, NEW, OLD, RECEIVERS, Accepts, Examples, signed
from tests.stack import wait_until
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow

LANGUAGES = [*RECEIVERS, "shell"]
EVENTS = ["payment.pending", "payment.succeeded"]
FREE_TEXT = "ร้านส้มตำ, not base64"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    return Examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module", params=LANGUAGES)
def accepts(request: pytest.FixtureRequest, examples: Examples) -> Iterator[Accepts]:
    """A verifier in each language, with the secret NEW."""
    with examples.verifier(request.param, NEW) as verifier:
        yield verifier


@pytest.mark.parametrize("secret", [NEW, FREE_TEXT], ids=["whsec", "free text"])
@pytest.mark.parametrize("language", RECEIVERS)
def test_example_receiver_accepts_webhooks_of_the_service(
    shop_client: ShopClient, examples: Examples, language: str, secret: str
) -> None:
    with (
        examples.receiver(language, secret) as receiver,
        registered(shop_client, receiver.url, EVENTS, secret) as path,
    ):
        shop_client.pay(shop_client.qr_code(reference="ใบสั่ง 7", metadata={"table": 4}))
        wait_until(lambda: set(EVENTS) <= set(receiver.genuine), 60)
        shown = shop_client.get(f"{path}/deliveries")["deliveries"]
        shop_client.post(f"{path}/deliveries/{shown[0]['delivery_id']}/redeliver", {})
        wait_until(lambda: answers_to(shop_client, path) == [204, 204, 204], 60)
        assert sorted(receiver.genuine) == sorted([*EVENTS, "webhook.ping"]), "a repeat is no news"


def answers_to(client: ShopClient, path: str) -> list[int | None]:
    """The HTTP status of each delivery attempt."""
    deliveries = client.get(f"{path}/deliveries")["deliveries"]
    return [attempt["http_status"] for each in deliveries for attempt in each["attempts"]]


def test_old_and_new_webhook_secret_verify_deliveries_after_rotation(
    shop_client: ShopClient, endpoint: Receiver, examples: Examples
) -> None:
    with registered(shop_client, endpoint.url(), EVENTS, OLD) as path:
        shop_client.post(f"{path}/secret/rotate", {"secret": NEW})
        shop_client.qr_code()
        _ping, sent = endpoint.wait_for(lambda found: len(found) == 2, 60)
    for secret in (OLD, NEW):
        Webhook(secret).verify(sent.body, sent.headers)
        for language in LANGUAGES:
            with examples.verifier(language, secret) as accepts:
                assert accepts(signature_of(sent), sent.body), (language, secret)


def signature_of(sent: ReceivedRequest) -> dict[str, str]:
    return {name: value for name, value in sent.headers.items() if name.startswith("webhook-")}


def test_webhook_with_valid_signature_is_accepted(accepts: Accepts) -> None:
    assert accepts(signed(), BODY)
    assert accepts(signed(late=240), BODY)
    assert accepts(signed(late=-240), BODY)


def test_webhook_with_one_valid_signature_among_several_is_accepted(accepts: Accepts) -> None:
    headers = signed()
    foreign = signed(secret=OLD)["webhook-signature"]
    for several in (f"{foreign} {headers['webhook-signature']}", f"v1a,AAAA {headers['webhook-signature']}"):
        assert accepts(headers | {"webhook-signature": several}, BODY)


def test_webhook_header_names_are_case_insensitive(accepts: Accepts) -> None:
    assert accepts({name.title(): value for name, value in signed().items()}, BODY)


@pytest.mark.parametrize("body", [BODY + b" ", BODY.replace(b"7", b"8"), BODY[:-1], b""])
def test_webhook_with_changed_body_is_refused(accepts: Accepts, body: bytes) -> None:
    assert not accepts(signed(), body)


@pytest.mark.parametrize("late", [360, -360, 86_400])
def test_webhook_with_timestamp_outside_the_tolerance_is_refused(accepts: Accepts, late: float) -> None:
    assert not accepts(signed(late=late), BODY)


def test_webhook_signed_with_another_secret_is_refused(accepts: Accepts) -> None:
    assert not accepts(signed(secret=OLD), BODY)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_webhook_without_a_required_header_is_refused(accepts: Accepts, missing: str) -> None:
    headers = signed()
    del headers[missing]
    assert not accepts(headers, BODY)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "evt_2"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "NaN"},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "9" * 400},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1"},
        {"webhook-signature": "* v1,="},
    ],
)
def test_webhook_with_changed_header_is_refused(accepts: Accepts, changed: dict[str, str]) -> None:
    assert not accepts(signed() | changed, BODY)


@pytest.mark.parametrize("language", LANGUAGES)
def test_free_text_webhook_secret_is_used_as_utf8_bytes(examples: Examples, language: str) -> None:
    as_library_takes_it = "whsec_" + base64.b64encode(FREE_TEXT.encode()).decode()
    with examples.verifier(language, FREE_TEXT) as accepts:
        assert accepts(signed(secret=as_library_takes_it), BODY)
        assert not accepts(signed(secret=OLD), BODY)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_*"])
def test_malformed_webhook_secret_is_refused_by_receivers(examples: Examples, secret: str) -> None:
    """With an empty secret anybody could sign."""
    for language in {*RECEIVERS} - {"php"}:
        with pytest.raises(AssertionError, match=r"usage|base64"), examples.receiver(language, secret):
            pass
    assert not examples.script_accepts(secret, signed(), BODY)
