"""A payer shows a slip: staff see whether its money came, for what it was used, and who showed it before."""

import io
import random
import struct
import zlib
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.test import Client
from PIL import Image

from core import ids
from core.slips import Slip, WalletSlip, slip_payload
from qrcodes import images
from receipts import slip_pictures, slip_reader
from receipts.models import Receipt, SlipCheck
from tests.conftest import BankCaller, Shop
from tests.receipts.staff import Odd, page_of, staff
from tests.threads import at_once

PAGE = "/admin/receipts/slipcheck/check/"
UNHEARD = "We have not heard of this transfer"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long")]


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt")


def slip_id() -> str:
    """What a bank calls a transfer on its slips."""
    return ids.random_text(20, "0123456789ABCDEF")


def told(shop: Shop, bank: BankCaller, slip: str, **changes: Any) -> Receipt:
    """Money whose slip the bank told."""
    return Odd(shop, bank).told(changes.pop("code", None) or shop.qr_code(), slip_reference=slip, **changes)


def check(client: Client, text: str, **fields: Any) -> str:
    """The page after somebody pasted a text."""
    answer = client.post(PAGE, {"text": text} | fields)
    assert answer.status_code == 200
    return answer.content.decode()


def mini_qr(slip: str, bank: str = "014") -> str:
    return slip_payload(Slip(bank, slip))


def test_a_slip_whose_money_came_says_what_it_paid(shop: Shop, bank: BankCaller, malee: Client) -> None:
    code, slip = shop.qr_code(), slip_id()
    receipt = told(shop, bank, slip, code=code)
    page = check(malee, mini_qr(slip), shown_for=code["payment_id"])
    assert "1,500.00 THB arrived" in page
    assert f"It paid payment {code['payment_id']} of Somtam House." in page
    assert page_of(receipt.id) in page
    assert "was used already" not in page
    shown = SlipCheck.objects.get()
    assert (shown.sending_bank, shown.transaction_id, shown.by) == ("014", slip, "malee")
    assert (shown.receipt, shown.shown_for) == (receipt, code["payment_id"])


def test_a_check_knows_the_request_that_asked_for_it(shop: Shop, malee: Client) -> None:
    code = shop.qr_code()
    answer = malee.post(PAGE, {"text": mini_qr(slip_id()), "shown_for": code["payment_id"]})
    told = shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()["timeline"]
    (shown,) = [entry for entry in told if entry["type"] == "staff.slip_checked"]
    assert shown["request_id"] == SlipCheck.objects.get().request_id == answer["X-Request-Id"]


def test_a_slip_of_which_no_bank_spoke_is_no_proof(shop: Shop, bank: BankCaller, malee: Client) -> None:
    told(shop, bank, slip_id())
    slip = slip_id()
    page = check(malee, mini_qr(slip, "004"))
    assert f"{UNHEARD}: 004 Kasikorn Bank, id {slip}." in page
    assert "no proof of payment" in page
    assert SlipCheck.objects.get().receipt is None


def test_a_slip_of_another_bank_with_the_same_id_is_another_transfer(
    shop: Shop, bank: BankCaller, malee: Client
) -> None:
    slip = slip_id()
    told(shop, bank, slip)
    assert UNHEARD in check(malee, mini_qr(slip, "004"))


def test_money_is_known_by_the_banks_own_id_as_well(shop: Shop, bank: BankCaller, malee: Client) -> None:
    slip = slip_id()
    bank.tell(shop.qr_code(), transaction_id=slip)
    assert "It paid payment" in check(malee, mini_qr(slip))


def test_a_slip_shown_twice_says_when_to_whom_and_for_what(
    shop: Shop, bank: BankCaller, malee: Client
) -> None:
    code, other, slip = shop.qr_code(), shop.qr_code(), slip_id()
    told(shop, bank, slip, code=code)
    check(malee, mini_qr(slip), shown_for=code["payment_id"])
    page = check(staff("somsak", "resolve_receipt"), mini_qr(slip), shown_for=other["payment_id"])
    assert "This slip was shown before" in page
    assert f"to malee for payment {code['payment_id']}" in page
    assert f"used already for payment {code['payment_id']}, not for {other['payment_id']}" in page
    assert SlipCheck.objects.count() == 2


def test_of_a_slip_that_is_shown_all_day_the_last_times_are_told(malee: Client) -> None:
    for _ in range(25):
        page = check(malee, mini_qr("A1"))
    assert page.count("This slip was shown before") == 20
    assert SlipCheck.objects.count() == 25


@pytest.mark.django_db(transaction=True)
def test_of_two_who_are_shown_a_slip_at_once_one_is_told_of_the_other() -> None:
    clients = [staff(name, "view_receipt") for name in ("malee", "somsak")]
    for number in range(10):
        asked = [partial(check, client, mini_qr(f"A{number}")) for client in clients]
        assert "This slip was shown before" in "".join(at_once(*asked))


def test_a_slip_of_money_that_waits_says_so(shop: Shop, bank: BankCaller, malee: Client) -> None:
    slip = slip_id()
    told(shop, bank, slip, satang=100)
    assert "It has paid nothing yet: it waits for a decision." in check(malee, mini_qr(slip))


def test_a_slip_of_money_that_the_bank_took_back_says_so(shop: Shop, bank: BankCaller, malee: Client) -> None:
    code, slip = shop.qr_code(), slip_id()
    credit = told(shop, bank, slip, code=code)
    told(shop, bank, slip, code=code, type="reversal", transaction_id=credit.bank_transaction_id)
    assert "The bank took this money back" in check(malee, mini_qr(slip))


def test_a_wallets_slip_is_read(malee: Client) -> None:
    slip = WalletSlip("P2P", "50001234567890", date(2026, 11, 21))
    assert f"{UNHEARD}: TrueMoney, id 50001234567890." in check(malee, slip_payload(slip))
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
def test_what_is_no_slip_is_said_and_not_noted(
    malee: Client, spoil: Callable[[str], str], words: str
) -> None:
    page = check(malee, spoil(mini_qr("0141A2B3C4D5E6F7")))
    assert words in page
    assert "<script>alert" not in page
    assert not SlipCheck.objects.exists()


def test_a_code_to_pay_with_is_no_slip(shop: Shop, malee: Client) -> None:
    assert "This is a code to pay with" in check(malee, shop.qr_code()["qr_data"])


@pytest.mark.parametrize("given", ["pay_1", "<script>", "qr_" + "0" * 27])
def test_what_it_was_shown_for_must_be_a_payment(malee: Client, given: str) -> None:
    assert "begins with pay_" in check(malee, mini_qr(slip_id()), shown_for=given)
    assert not SlipCheck.objects.exists()


def pictured(text: str, form: str = "PNG") -> SimpleUploadedFile:
    """A picture of a slip: the code in the middle of a screen."""
    screen = Image.new("RGB", (1080, 1920), "white")
    screen.paste(Image.open(io.BytesIO(images.png(text))).convert("RGB"), (200, 900))
    file = io.BytesIO()
    screen.save(file, form)
    return SimpleUploadedFile("slip", file.getvalue())


@pytest.mark.parametrize("form", slip_reader.FORMATS)
def test_a_picture_of_the_slip_does_as_well(shop: Shop, bank: BankCaller, malee: Client, form: str) -> None:
    slip = slip_id()
    told(shop, bank, slip)
    page = malee.post(PAGE, {"picture": pictured(mini_qr(slip), form)}).content.decode()
    assert "1,500.00 THB arrived" in page


def claiming(width: int, height: int) -> bytes:
    """A PNG that says in its header how large it is, and holds nothing."""

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
        (images.notice_png("PAID"), "no QR code on this picture"),
        (claiming(5001, 5000), "too many pixels"),
        (claiming(60_000, 60_000), "too many pixels"),
        (images.png("hello"), "not the mini-QR of a Thai slip"),
    ],
)
def test_a_bad_picture_is_refused_in_words(malee: Client, content: bytes, words: str) -> None:
    posted = {"picture": SimpleUploadedFile("slip.png", content)}
    assert words in malee.post(PAGE, posted).content.decode()
    assert not SlipCheck.objects.exists()


def test_a_photograph_of_a_slip_may_have_megabytes(shop: Shop, bank: BankCaller, malee: Client) -> None:
    slip = slip_id()
    told(shop, bank, slip)
    grain = Image.frombytes("L", (1500, 2000), random.Random(1).randbytes(3_000_000))
    grain.paste(Image.open(io.BytesIO(images.png(mini_qr(slip)))).convert("L"), (400, 900))
    file = io.BytesIO()
    grain.save(file, "PNG")
    assert 1_000_000 < len(file.getvalue()) < slip_pictures.MOST_BYTES
    posted = {"picture": SimpleUploadedFile("slip.png", file.getvalue())}
    assert "1,500.00 THB arrived" in malee.post(PAGE, posted).content.decode()


def test_a_picture_is_judged_by_its_size_before_anything_else(malee: Client) -> None:
    posted = {"picture": SimpleUploadedFile("slip.png", bytes(slip_pictures.MOST_BYTES + 1))}
    assert "more than 5 MB" in malee.post(PAGE, posted).content.decode()


def test_strangers_and_staff_without_a_say_check_nothing(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    nobody = staff("nobody")
    assert nobody.get(PAGE).status_code == 403
    assert nobody.post(PAGE, {"text": mini_qr(slip_id())}).status_code == 403
    assert not SlipCheck.objects.exists()


def test_a_slip_cannot_be_checked_from_another_site(malee: Client) -> None:
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(PAGE, {"text": mini_qr(slip_id())}).status_code == 403


def test_that_a_slip_was_shown_cannot_be_forgotten(malee: Client) -> None:
    check(malee, mini_qr(slip_id()))
    with pytest.raises(DatabaseError), transaction.atomic():
        SlipCheck.objects.all().delete()


def test_a_link_may_say_for_which_payment_it_is_shown(malee: Client) -> None:
    assert "pay_x" in malee.get(PAGE, {"shown_for": "pay_x"}).content.decode()
