"""Payers prove a payment by a picture of its slip. Pictures come from strangers."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from core.http import uploads
from core.http.rate_limits import RateLimit
from core.thai.slips import Slip, slip_payload
from core.work import decoders, redis
from qrcodes import images
from qrcodes.models import QrCode
from reconciliation.claims import page, proof
from reconciliation.slips import pictures
from refunds.models import ClaimLink, ClaimTry
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.claims.builders import FORM, NO_BANK, Claim, claim_of
from tests.reconciliation.slips.test_slip_check import claiming, written
from tests.thai_codes import wallet_slip
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long"), pytest.mark.slow]
NOT_A_PICTURE = "This is not a PNG, JPEG or WebP picture, or it is broken."


@pytest.fixture
def claim(shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch) -> Claim:
    monkeypatch.setattr(page, "RATE", RateLimit(per_second=1000, burst=1000))
    return claim_of(shop, bank)


def orders() -> int:
    return Transfer.objects.filter(purpose="refund").count()


def photograph(text: str, form: str, *, orientation: int = 1, turned: int = 0) -> bytes:
    """A noisy photograph of a slip, and what its camera says about its orientation."""
    picture = Image.effect_noise((900, 1600), 20)
    picture.paste(Image.open(io.BytesIO(images.png(text))).convert("L").resize((400, 400)), (250, 1000))
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    picture.rotate(turned, expand=True).save(file, form, exif=exif)
    return file.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_picture_of_the_slip_is_a_proof(claim: Claim, form: str) -> None:
    picture = photograph(slip_payload(Slip(NO_BANK, claim.slip_reference)), form)
    assert claim.send_picture(picture).status_code == 303
    assert (orders(), claim.heading()) == (1, "We have your account")


@pytest.mark.parametrize(("orientation", "turned"), [(6, 90), (3, 180), (8, 270)])
def test_turned_photograph_is_a_proof(claim: Claim, orientation: int, turned: int) -> None:
    slip = slip_payload(Slip(NO_BANK, claim.slip_reference))
    picture = photograph(slip, "JPEG", orientation=orientation, turned=turned)
    assert claim.send_picture(picture).status_code == 303


def test_picture_with_another_file_behind_it_is_only_a_picture(claim: Claim) -> None:
    assert claim.send_picture(claim.slip_picture + b"<script>alert(1)</script>PK\x03\x04").status_code == 303


@pytest.mark.parametrize(
    ("fields", "is_right"),
    [({"last_digits": "7890"}, True), ({"last_digits": "0000"}, False), ({"slip_reference": "A1"}, False)],
)
def test_each_proof_beside_the_picture_must_be_right(
    claim: Claim, fields: dict[str, str], is_right: bool
) -> None:
    assert claim.send_picture(claim.slip_picture, **fields).status_code == (303 if is_right else 422)
    assert ClaimTry.objects.get().is_proven is is_right


def test_slip_of_another_payment_counts_as_a_try(claim: Claim) -> None:
    answer = claim.send_picture(images.png(slip_payload(Slip("014", "A1B2C3"))))
    assert answer.status_code == 422
    assert "This does not match the payment." in answer.content.decode()
    assert (orders(), ClaimTry.objects.get().is_proven) == (0, False)


def test_slip_of_somebody_who_paid_the_same_code_again_is_no_proof(
    claim: Claim, bank: SandboxBankClient
) -> None:
    code = {"qr_data": QrCode.objects.get().qr_data, "amount": 100}
    assert bank.notify(code, transaction_id="SECONDPAYER1").status_code == 200
    assert claim.send_picture(images.png(slip_payload(Slip("014", "SECONDPAYER1")))).status_code == 422
    assert orders() == 0


def test_slip_of_a_wallet_is_read(claim: Claim) -> None:
    slip = wallet_slip(**{"03": "50001234567890"})
    assert "This does not match" in claim.send_picture(images.png(slip)).content.decode()


def many_pixels() -> bytes:
    """A few kilobytes that unpack to 25 megabytes."""
    return written(Image.new("1", (5000, 5000)))


def truncated() -> bytes:
    picture = photograph("A", "JPEG")
    return picture[: len(picture) // 2]


SPOILED = slip_payload(Slip("014", "A1B2C3"))[:-1] + "?"


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (b"", NOT_A_PICTURE),
        (b"not a picture", NOT_A_PICTURE),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", NOT_A_PICTURE),
        (b"GIF89a" + bytes(50), NOT_A_PICTURE),
        (b"%PDF-1.7 \xff\xd8\xff", NOT_A_PICTURE),
        (truncated, NOT_A_PICTURE),
        (claiming(60_000, 60_000), "too many pixels"),
        (claiming(0, 0), NOT_A_PICTURE),
        (many_pixels, "No QR code can be read"),
        (images.status_image("paid", "png"), "No QR code can be read"),
        (images.png("hello"), "not that of a slip"),
        (images.png("<script>alert(1)</script>"), "not that of a slip"),
        (images.png(SPOILED), "not that of a slip"),
    ],
)
def test_wrong_picture_is_named_and_costs_no_try(claim: Claim, picture: Any, words: str) -> None:
    answer = claim.send_picture(picture() if callable(picture) else picture)
    text = answer.content.decode()
    assert (answer.status_code, words in text, "<script>alert" in text) == (422, True, False)
    assert 'value="405-1-23456-7"' in text, "the other fields are kept"
    assert (orders(), ClaimTry.objects.count()) == (0, 0)


def test_picture_of_the_payment_code_is_named(claim: Claim) -> None:
    answer = claim.send_picture(images.png(QrCode.objects.get().qr_data))
    assert "This picture shows the code that you paid." in answer.content.decode()
    assert ClaimTry.objects.count() == 0


def test_messages_about_pictures_are_in_thai(claim: Claim) -> None:
    for picture in (b"x", images.status_image("paid", "png"), images.png("hello")):
        form = FORM | {"picture": SimpleUploadedFile("slip", picture)}
        text = Client().post(f"{claim.path}?lang=th", form).content.decode()
        (error,) = [line for line in text.splitlines() if 'class="error"' in line]
        assert "รูป" in error


def test_several_pictures_are_refused(claim: Claim) -> None:
    answer = claim.send_picture(claim.slip_picture, claim.slip_picture)
    assert (answer.status_code, "Choose one picture." in answer.content.decode()) == (422, True)
    assert ClaimTry.objects.count() == 0


def test_picture_must_be_chosen_again_after_a_mistake(claim: Claim) -> None:
    answer = claim.send_picture(claim.slip_picture, account_name="")
    assert "Choose the picture again." in answer.content.decode()
    assert ClaimTry.objects.count() == 0


def test_picture_over_the_limit_is_refused_before_it_is_read(claim: Claim) -> None:
    answer = claim.send_picture(bytes(uploads.MAX_PICTURE + 1))
    assert (answer.status_code, "more than 10 MB" in answer.content.decode()) == (422, True)
    answer = claim.send_picture(bytes(uploads.MAX_PICTURE + 70_000))
    assert (answer.status_code, "more than 10 MB" in answer.content.decode()) == (413, True)
    assert "Somtam House" in answer.content.decode()
    assert ClaimTry.objects.count() == 0


def test_picture_for_a_link_without_tries_is_not_decoded(
    claim: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        claim.send(last_digits="0000")
    started = tmp_path / "started"
    decoder = tmp_path / "decoder.py"
    decoder.write_text(f"open({str(started)!r}, 'w')")
    monkeypatch.setattr(pictures, "DECODER", decoder)
    assert claim.send_picture(claim.slip_picture).status_code == 403
    assert not started.exists()


def test_pictures_of_one_merchant_are_limited(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "PICTURE_RATE", RateLimit(per_second=0.01, burst=1))
    merchant_id = ClaimLink.objects.get().refund.merchant_id
    redis.try_call(lambda client: client.delete(f"rate:claim-picture:{merchant_id}"))
    assert "No QR code" in claim.send_picture(images.status_image("paid", "png")).content.decode()
    assert str(pictures.BUSY) in claim.send_picture(claim.slip_picture).content.decode()
    assert claim.send(slip_reference=claim.slip_reference).status_code == 303


def test_picture_that_a_payer_sends_does_not_keep_staff_waiting() -> None:
    with decoders.PICTURE_OF_PAYER.taken():
        assert pictures.read_qr_codes(images.png("A")) == ["A"]
        with pytest.raises(pictures.UnreadablePicture, match="Another picture"):
            pictures.read_qr_codes(images.png("A"), decoders.PICTURE_OF_PAYER)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="picture"; filename=',
        ),
        (
            "multipart/form-data; boundary=x",
            200 * b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n\r\nx\r\n',
        ),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a"\r\n%s'
            % b"Content-Transfer-Encoding: base64\r\n\r\n!!!\r\n--x--\r\n",
        ),
    ],
)
def test_malformed_form_is_no_server_error(claim: Claim, content_type: str, body: bytes) -> None:
    answer = Client().post(claim.path, body, content_type=content_type)
    assert 400 <= answer.status_code < 500
    assert ClaimTry.objects.count() == 0
