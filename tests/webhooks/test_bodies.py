"""Bodies of events are compressed in their column and read as they were."""

import pytest

from tests.conftest import Shop
from webhooks import bodies
from webhooks.models import Event

LIKE_NO_OTHER = b'{"event":"' + bytes(range(48, 123)) + b'"}'


@pytest.mark.parametrize(
    "body", [b"{}", b'{"event":"payment.pending"}', b'{"event":"%s"}' % (b"x" * 99), LIKE_NO_OTHER]
)
def test_body_is_read_as_it_was(body: bytes) -> None:
    packed = bodies.pack(body, "evt_1pay_1")
    assert bodies.unpack(packed, "evt_1pay_1") == body
    assert len(packed) <= len(body)


def test_usual_words_do_not_change() -> None:
    """Stored bodies are read with them."""
    stored = bytes.fromhex("482c1e0c6169c30c3d64b7e3f4aca1526d2d0072ce14b0")
    assert (
        bodies.unpack(stored, "evt_1pay_1") == b'{"event":"payment.succeeded","data":{"payment_id":"pay_1"}}'
    )


def test_event_takes_a_quarter_of_its_message(shop: Shop) -> None:
    shop.qr_code()
    event = Event.objects.get()
    assert len(event.packed_body) < 0.3 * len(event.body)
