"""Slip checks: whether the money arrived, what it paid, and earlier checks of the slip."""

import io
import random
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from core import ids
from core.thai.slips import Slip, slip_payload
from core.work import decoders
from qrcodes import images
from reconciliation.models import BankTransaction, SlipCheck
from reconciliation.slips import decode_picture, pictures
from reconciliation.slips.pictures import UnreadablePicture
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, exception_url, staff_client
from tests.sqlstates import NOT_ALLOWED, sqlstate
from tests.thai_codes import wallet_slip

PAGE = "/admin/reconciliation/slipcheck/check/"
UNHEARD = "No bank has reported this transfer"
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long")]


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_banktransaction", "check_slip")


def slip_id() -> str:
    """Return a transaction id as on a slip."""
    return ids.random_text(20, "0123456789ABCDEF")


def report(shop: Shop, bank: SandboxBankClient, slip: str, **changes: Any) -> BankTransaction:
    """Return a bank transaction with this slip reference."""
    return Seller(shop, bank).report(
        changes.pop("code", None) or shop.qr_code(), slip_reference=slip, **changes
    )


def check(client: Client, text: str, **fields: Any) -> str:
    """Return the page after a text was checked."""
    answer = client.post(PAGE, {"text": text} | fields)
    assert answer.status_code == 200
    return answer.content.decode()


def mini_qr(slip: str, bank: str = "014") -> str:
    return slip_payload(Slip(bank, slip))


def test_slip_of_received_money_shows_the_payment(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    code, slip = shop.qr_code(), slip_id()
    bank_transaction = report(shop, bank, slip, code=code)
    page = check(malee, mini_qr(slip), claimed_payment_id=code["payment_id"])
    assert "1,500.00 THB arrived" in page
    assert f"It paid payment {code['payment_id']} of Somtam House." in page
    assert exception_url(bank_transaction.id) in page
    assert "was used already" not in page
    shown = SlipCheck.objects.get()
    assert (shown.sending_bank, shown.transaction_id, shown.actor) == ("014", slip, "staff:malee")
    assert (shown.bank_transaction, shown.claimed_payment_id) == (bank_transaction, code["payment_id"])


def test_slip_check_stores_the_request_id(shop: Shop, malee: Client) -> None:
    code = shop.qr_code()
    answer = malee.post(PAGE, {"text": mini_qr(slip_id()), "claimed_payment_id": code["payment_id"]})
    timeline = shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()["timeline"]
    (shown,) = [entry for entry in timeline if entry["type"] == "staff.slip_checked"]
    assert shown["request_id"] == SlipCheck.objects.get().request_id == answer["X-Request-Id"]


def test_slip_that_no_bank_reported_is_no_proof(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    report(shop, bank, slip_id())
    slip = slip_id()
    page = check(malee, mini_qr(slip, "004"))
    assert f"{UNHEARD}: 004 Kasikorn Bank, id {slip}." in page
    assert "no proof of payment" in page
    assert SlipCheck.objects.get().bank_transaction is None


def test_slip_of_another_bank_with_the_same_id_is_another_transfer(
    shop: Shop, bank: SandboxBankClient, malee: Client
) -> None:
    slip = slip_id()
    report(shop, bank, slip)
    assert UNHEARD in check(malee, mini_qr(slip, "004"))


def test_slip_finds_money_by_the_bank_reference(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    slip = slip_id()
    bank.notify(shop.qr_code(), transaction_id=slip)
    assert "It paid payment" in check(malee, mini_qr(slip))


def test_slip_shown_twice_shows_earlier_checks(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    code, other, slip = shop.qr_code(), shop.qr_code(), slip_id()
    report(shop, bank, slip, code=code)
    check(malee, mini_qr(slip), claimed_payment_id=code["payment_id"])
    page = check(staff_client("somsak", "check_slip"), mini_qr(slip), claimed_payment_id=other["payment_id"])
    assert "This slip was shown before" in page
    assert f"to malee for payment {code['payment_id']}" in page
    assert f"used already for payment {code['payment_id']}, not for {other['payment_id']}" in page
    assert SlipCheck.objects.count() == 2


def test_slip_check_shows_the_latest_twenty_earlier_checks(malee: Client) -> None:
    for _ in range(25):
        page = check(malee, mini_qr("A1"))
    assert page.count("This slip was shown before") == 20
    assert SlipCheck.objects.count() == 25


@pytest.mark.django_db(transaction=True)
def test_concurrent_checks_of_one_slip_show_each_other() -> None:
    clients = [staff_client(name, "view_banktransaction", "check_slip") for name in ("malee", "somsak")]
    for number in range(10):
        asked = [partial(check, client, mini_qr(f"A{number}")) for client in clients]
        assert "This slip was shown before" in "".join(run_concurrently(*asked))


def test_slip_check_shows_an_open_exception(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    slip = slip_id()
    report(shop, bank, slip, satang=100)
    assert "It has paid nothing yet: it is an open exception." in check(malee, mini_qr(slip))


def test_slip_check_shows_reversed_money(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    code, slip = shop.qr_code(), slip_id()
    credit = report(shop, bank, slip, code=code)
    report(shop, bank, slip, code=code, type="reversal", transaction_id=credit.bank_reference)
    assert "The bank reversed this money" in check(malee, mini_qr(slip))


def test_wallet_slip_is_parsed(malee: Client) -> None:
    slip = wallet_slip(**{"03": "50001234567890"})
    assert f"{UNHEARD}: TrueMoney, id 50001234567890." in check(malee, slip)
    assert SlipCheck.objects.get().sending_bank == "truemoney"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace("014", "004", 1), "The checksum is wrong"),
        (lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"), "The checksum is wrong"),
        (lambda text: "hello", "not the mini-QR of a Thai slip"),
        (lambda text: "<script>alert(1)</script>", "not the mini-QR of a Thai slip"),
        (lambda text: " ", "Paste the text, or choose a picture."),
    ],
)
def test_invalid_slip_is_refused_and_not_stored(
    malee: Client, spoil: Callable[[str], str], words: str
) -> None:
    page = check(malee, spoil(mini_qr("0141A2B3C4D5E6F7")))
    assert words in page
    assert "<script>alert" not in page
    assert not SlipCheck.objects.exists()


def test_payment_qr_code_is_not_a_slip(shop: Shop, malee: Client) -> None:
    assert "This is a payment QR code" in check(malee, shop.qr_code()["qr_data"])


@pytest.mark.parametrize("given", ["pay_1", "<script>", "qr_" + "0" * 27])
def test_claimed_payment_id_must_be_a_payment_id(malee: Client, given: str) -> None:
    assert "begins with pay_" in check(malee, mini_qr(slip_id()), claimed_payment_id=given)
    assert not SlipCheck.objects.exists()


def pictured(text: str, form: str = "PNG") -> SimpleUploadedFile:
    """Return a picture of a slip: the code in the middle of a screen."""
    screen = Image.new("RGB", (1080, 1920), "white")
    screen.paste(Image.open(io.BytesIO(images.png(text))).convert("RGB"), (200, 900))
    file = io.BytesIO()
    screen.save(file, form)
    return SimpleUploadedFile("slip", file.getvalue())


@pytest.mark.parametrize("form", list(decode_picture.MAX_PIXELS))
def test_slip_picture_is_decoded(shop: Shop, bank: SandboxBankClient, malee: Client, form: str) -> None:
    slip = slip_id()
    report(shop, bank, slip)
    page = malee.post(PAGE, {"picture": pictured(mini_qr(slip), form)}).content.decode()
    assert "1,500.00 THB arrived" in page


def claiming(width: int, height: int) -> bytes:
    """Return an empty PNG whose header states this size."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a picture", "or it is broken"),
        (b"GIF89a" + bytes(50), "or it is broken"),
        (images.png("A")[:200], "or it is broken"),
        (images.status_image("paid", "png"), "No QR code can be read in this picture"),
        (claiming(5001, 5000), "too many pixels"),
        (claiming(60_000, 60_000), "too many pixels"),
        (images.png("hello"), "not the mini-QR of a Thai slip"),
    ],
)
def test_invalid_slip_picture_is_refused_with_a_message(malee: Client, content: bytes, words: str) -> None:
    posted = {"picture": SimpleUploadedFile("slip.png", content)}
    assert words in malee.post(PAGE, posted).content.decode()
    assert not SlipCheck.objects.exists()


def test_slip_photograph_of_several_megabytes_is_decoded(
    shop: Shop, bank: SandboxBankClient, malee: Client
) -> None:
    slip = slip_id()
    report(shop, bank, slip)
    grain = Image.frombytes("L", (1500, 2000), random.Random(1).randbytes(3_000_000))
    grain.paste(Image.open(io.BytesIO(images.png(mini_qr(slip)))).convert("L"), (400, 900))
    file = io.BytesIO()
    grain.save(file, "PNG")
    assert 1_000_000 < len(file.getvalue()) < pictures.MAX_BYTES
    posted = {"picture": SimpleUploadedFile("slip.png", file.getvalue())}
    assert "1,500.00 THB arrived" in malee.post(PAGE, posted).content.decode()


def test_slip_picture_above_the_size_limit_is_refused_before_decoding(malee: Client) -> None:
    posted = {"picture": SimpleUploadedFile("slip.png", bytes(pictures.MAX_BYTES + 1))}
    assert "more than 10 MB" in malee.post(PAGE, posted).content.decode()


def test_slip_check_needs_permission(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    nobody = staff_client("nobody")
    assert nobody.get(PAGE).status_code == 403
    assert nobody.post(PAGE, {"text": mini_qr(slip_id())}).status_code == 403
    assert not SlipCheck.objects.exists()


def test_slip_check_needs_a_csrf_token(malee: Client) -> None:
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(PAGE, {"text": mini_qr(slip_id())}).status_code == 403


@pytest.mark.parametrize("attack", ["DELETE FROM", "TRUNCATE"])
def test_young_slip_checks_cannot_be_deleted(malee: Client, attack: str) -> None:
    check(malee, mini_qr(slip_id()))
    assert sqlstate(f"{attack} reconciliation_slipcheck") == NOT_ALLOWED


def test_slip_check_link_prefills_the_claimed_payment(malee: Client) -> None:
    assert "pay_x" in malee.get(PAGE, {"claimed_payment_id": "pay_x"}).content.decode()


# --- pictures drawn to harm, and pictures that are hard to read -----------------------------------------


SLIP = slip_payload(Slip("014", "A1B2C3D4E5F6A7B8C9D0"))


def written(image: Image.Image, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def photograph(width: int, height: int, code_width: int) -> bytes:
    """Return a noisy photograph with a small, rotated code."""
    picture = Image.effect_noise((width, height), 25)
    code = Image.open(io.BytesIO(images.png(SLIP))).convert("L").resize((code_width, code_width))
    picture.paste(code.rotate(4, expand=True, fillcolor=255), (width // 3, height // 2))
    return written(picture, "JPEG")


def refusal_of(picture: bytes) -> str:
    with pytest.raises(UnreadablePicture) as refused:
        pictures.read_qr_codes(picture)
    return str(refused.value)


def running() -> set[str]:
    """Return the ids of the decoder processes that still run."""
    children = Path("/proc/self/task").glob("*/children")
    begun = {pid for each in children for pid in each.read_text().split()}
    return {pid for pid in begun if b"decode_picture" in Path(f"/proc/{pid}/cmdline").read_bytes()}


BOMBS = [("WEBP", (5000, 5000)), ("PNG", (5000, 5000)), ("WEBP", (4000, 2000)), ("PNG", (4000, 3000))]


def bomb(kind: str, size: tuple[int, int]) -> bytes:
    """A small file with many pixels."""
    file = io.BytesIO()
    Image.new("RGBA", size).save(file, kind, lossless=True)
    return file.getvalue()


def test_four_bombs_at_once_take_one_decoder_and_few_pixels() -> None:
    pictures_ = [bomb(*each) for each in BOMBS]
    assert all(len(each) < 100_000 for each in pictures_)
    with ThreadPoolExecutor(len(pictures_)) as pool:
        refusals = Counter(pool.map(refusal_of, pictures_))
    assert refusals[str(pictures.BUSY)] >= 1
    known = (pictures.BUSY, pictures.FAILED, *pictures.REASONS.values())
    assert set(refusals) <= set(map(str, known))
    too_large, no_code = str(pictures.REASONS["too_large"]), str(pictures.REASONS["no_qr_code"])
    assert [refusal_of(each) for each in pictures_[:1] + pictures_[2:]] == [too_large, no_code, no_code]
    assert refusal_of(pictures_[1]) in (too_large, str(pictures.FAILED))  # it has no memory for the colours


def test_pictures_of_two_processes_wait_for_one_lock() -> None:
    """The lock of a process whose decoder runs on keeps others out."""
    with decoders.PICTURE_OF_STAFF.taken() as slot:
        decoder = subprocess.Popen(["sleep", "60"], pass_fds=(slot,))
    try:
        assert refusal_of(images.png(SLIP)) == str(pictures.BUSY)
    finally:
        decoder.kill()
        decoder.wait()
    assert pictures.read_qr_codes(images.png(SLIP)) == [SLIP]


def test_decoding_a_slip_picture_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders.PICTURE_OF_STAFF, "timeout_seconds", 0.01)
    assert refusal_of(images.png(SLIP)) == str(pictures.TOO_SLOW)
    assert not running()


def test_crash_of_the_slip_decoder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = tmp_path / "reader.py"
    decoder.write_text("raise MemoryError")
    monkeypatch.setattr(pictures, "DECODER", decoder)
    assert refusal_of(images.png(SLIP)) == str(pictures.FAILED)


def test_slip_decoder_process_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = tmp_path / "reader.py"
    decoder.write_text("import json, os; print(json.dumps(list(os.environ)))")
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setattr(pictures, "DECODER", decoder)
    assert "SECRET_KEY" not in pictures.read_qr_codes(b"")


@pytest.mark.parametrize("code_width", [150, 400, 1200])
def test_small_qr_code_on_a_large_photograph_is_decoded(code_width: int) -> None:
    assert pictures.read_qr_codes(photograph(3000, 4000, code_width)) == [SLIP]


@pytest.mark.parametrize(
    ("size", "words"),
    [((65_535, 40), pictures.REASONS["no_qr_code"]), ((65_536, 1), pictures.REASONS["too_large"])],
)
def test_extremely_wide_slip_picture_is_refused(size: tuple[int, int], words: str) -> None:
    assert refusal_of(written(Image.new("1", size))) == str(words)
