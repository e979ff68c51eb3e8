"""The column with both bodies of a request."""

import pytest

from request_log import bodies

LONG = '{"reference":"' + "ก" * 4_000 + '"}'


@pytest.mark.parametrize(
    ("request_body", "response_body"),
    [
        ("", ""),
        ("{}", ""),
        ("", "[812 bytes]"),
        ("[34 bytes]", "[812 bytes]"),
        ('{"amount":150000}', '{"payment_id":"pay_x","status":"pending","amount":150000,"currency":"THB"}'),
        ('"[a string of 7 characters]"', LONG),
        (LONG, LONG),
    ],
)
def test_bodies_are_read_as_they_were_written(request_body: str, response_body: str) -> None:
    assert bodies.unpack(bodies.pack(request_body, response_body, "pay_x"), "pay_x") == (
        request_body,
        response_body,
    )


def test_bodies_of_an_older_release_can_be_read() -> None:
    """If this fails, the text that `bodies` never changes has changed."""
    stored = bytes.fromhex("482c37d6da98231839a0f88314d098a539345e6b6b010f731737")
    assert bodies.unpack(stored, "pay_1") == (
        '{"amount":150000,"currency":"THB"}',
        '{"error":{"code":"invalid_amount"}}',
    )


def test_bodies_of_a_creation_take_less_than_half_of_their_size() -> None:
    request = '{"amount":4200,"currency":"THB","reference":"INV-7"}'
    response = (
        '{"amount":4200,"currency":"THB","reference":"INV-7","metadata":"[an object of 0 fields]",'
        '"amount_display":"42.00 THB","qr_code_id":"qr_0oE1PXZGqcZBZBvfqisJHCvwJvO",'
        '"qr_data":"00020101021230630016A000000677010112011509940001580400102207K2M9QX4T1B8V5N3C6ZD53037645405'
        '42.005802TH63044AFB","expires_at":"2027-01-05T09:19:05.501Z",'
        '"payment_id":"pay_0oE1PZjiZAWmp6O2BO6aMzhgtUt","status":"pending"}'
    )
    assert (
        len(bodies.pack(request, response, "pay_0oE1PXZGqcZBZBvfqisJHCvwJvO")) < len(request + response) / 2
    )
