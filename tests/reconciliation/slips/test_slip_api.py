"""Merchants check slips by the API. Verdicts are about what banks report, never about what a slip shows."""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from PIL import Image, ImageFilter

from banks import TransferResult
from core import clock, ids
from core.http.rate_limits import RateLimit
from core.thai import thaiqr
from core.work import decoders, redis
from qrcodes import images
from reconciliation.models import BankRateLimit, BankTransaction, Inquiry, SlipCheck
from reconciliation.slips import checking, views
from tests.banks import fake_scb
from tests.banks.fake_scb import SLIP, FakeScb, error_response, success
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.reconciliation.builders import Seller
from tests.reconciliation.slips.test_slip_check import mini_qr, slip_id
from tests.refunds.builders import send_due_refunds
from tests.thai_codes import wallet_slip
from tests.transfers.builders import Bank
from tests.webhook_receiver import Reply

SLIPS = "/Thai/v1/slips"
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long")]


@pytest.fixture(autouse=True)
def no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "RATE", RateLimit(per_second=1000, burst=1000))


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def scb() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


@pytest.fixture
def live(db: None, scb: FakeScb, noon: Any) -> Iterator[Shop]:
    with time_machine.travel(noon):
        yield fake_scb.shop_at(scb)


def paid(seller: Seller, satang: int = 150_000, **changes: Any) -> tuple[str, str]:
    """A paid payment and the mini-QR of its slip."""
    slip, code = slip_id(), seller.shop.qr_code(amount=satang)
    seller.report(code, slip_reference=slip, **changes)
    return code["payment_id"], mini_qr(slip)


def check(shop: Shop, qr_data: str, **fields: Any) -> dict[str, Any]:
    answer = shop.post(SLIPS, {"qr_data": qr_data} | fields)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def verdict(shop: Shop, qr_data: str, **fields: Any) -> str:
    return str(check(shop, qr_data, **fields)["verdict"])


def send(shop: Shop, picture: bytes | None, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """Send a form."""
    file = {} if picture is None else {"picture": SimpleUploadedFile("slip.png", picture)}
    key = {"Authorization": f"Bearer {shop.secret_key}"}
    return shop.http.post(SLIPS, fields | file, headers=key | (headers or {}))


NOTHING = dict.fromkeys(("payment_id", "transferred_at", "amount", "amount_display", "payer"))


def test_slip_of_a_payment_is_valid_and_shows_its_masked_payer(seller: Seller) -> None:
    payment_id, slip = paid(seller)
    before = seller.shop.payment(payment_id)
    found = check(seller.shop, slip, payment_id=payment_id, amount=150_000)
    assert ids.looks_right(found.pop("slip_id"), "slp_")
    money = BankTransaction.objects.get()
    assert found == {
        "verdict": "valid",
        "payment_id": payment_id,
        "bank": "014",
        "transferred_at": clock.iso(money.paid_at),
        "amount": 150_000,
        "amount_display": "1,500.00 THB",
        "payer": "S*** J***",
    }
    assert seller.shop.payment(payment_id) == before
    assert verdict(seller.shop, slip, payment_id=payment_id) == "valid"


def test_slip_that_was_valid_before_is_repeated_without_its_payment(seller: Seller) -> None:
    payment_id, slip = paid(seller)
    assert [verdict(seller.shop, slip) for _ in range(3)] == ["valid", "repeated", "repeated"]
    assert verdict(seller.shop, slip, payment_id=payment_id) == "valid"
    other_id, _ = paid(seller)
    assert verdict(seller.shop, slip, payment_id=other_id) == "repeated"


def test_forged_slip_that_names_the_same_transfer_otherwise_is_repeated(seller: Seller) -> None:
    slip = slip_id()
    money = seller.report(seller.shop.qr_code(), slip_reference=slip)
    assert verdict(seller.shop, mini_qr(slip)) == "valid"
    forged = (mini_qr(money.bank_reference), wallet_slip(**{"03": slip}))
    assert [verdict(seller.shop, other) for other in forged] == ["repeated", "repeated"]


def test_slip_of_another_order_is_repeated_at_its_first_check(seller: Seller) -> None:
    payment_id, slip = paid(seller)
    waiting = seller.shop.qr_code()["payment_id"]
    found = check(seller.shop, slip, payment_id=waiting)
    assert (found["verdict"], found["payment_id"]) == ("repeated", payment_id)
    assert seller.shop.payment(waiting)["status"] == "pending"
    assert verdict(seller.shop, slip, payment_id=payment_id) == "valid"


def test_slip_of_another_merchant_shows_nothing_of_it(seller: Seller, other_shop: Shop) -> None:
    _, slip = paid(seller)
    found = check(other_shop, slip)
    assert {name: found[name] for name in NOTHING} == NOTHING
    assert found["verdict"] == "wrong_receiver"
    stored = SlipCheck.objects.get()
    assert (stored.bank_transaction, stored.payment, stored.merchant) == (None, None, other_shop.merchant)


def test_money_of_another_merchant_with_the_same_id_hides_nothing(
    seller: Seller, other_shop: Shop, bank: SandboxBankClient
) -> None:
    slip = slip_id()
    for shop in (other_shop, seller.shop):
        Seller(shop, bank).report(shop.qr_code(), slip_reference=slip)
    assert verdict(seller.shop, mini_qr(slip)) == verdict(other_shop, mini_qr(slip)) == "valid"


def test_other_amount_than_expected_is_a_wrong_amount(seller: Seller) -> None:
    payment_id, slip = paid(seller)
    assert verdict(seller.shop, slip, payment_id=payment_id, amount=150_100) == "wrong_amount"
    short, code = slip_id(), seller.shop.qr_code()
    seller.report(code, slip_reference=short, satang=149_900)
    found = check(seller.shop, mini_qr(short), payment_id=code["payment_id"])
    assert (found["verdict"], found["amount"]) == ("wrong_amount", 149_900)


def test_money_that_waits_for_a_decision_is_unknown(seller: Seller) -> None:
    code, second = seller.shop.qr_code(), slip_id()
    seller.report(code)
    seller.report(code, slip_reference=second)
    assert verdict(seller.shop, mini_qr(second), payment_id=code["payment_id"]) == "unknown"
    nobody = slip_id()
    seller.unmatched(slip_reference=nobody)
    found = check(seller.shop, mini_qr(nobody))
    assert (found["verdict"], found["payment_id"]) == ("unknown", None)


def test_money_that_went_back_is_not_found(seller: Seller, served_by: Callable[..., Bank]) -> None:
    payment_id, slip = paid(seller)
    seller.reverse(seller.bank_transaction(payment_id))
    assert verdict(seller.shop, slip, payment_id=payment_id) == "not_found"
    payment_id, slip = paid(seller)
    served_by(sends=[TransferResult("succeeded", "b-1")])
    seller.refund(payment_id)
    send_due_refunds()
    assert seller.shop.payment(payment_id)["status"] == "refunded"
    assert verdict(seller.shop, slip, payment_id=payment_id) == "not_found"


@pytest.mark.parametrize(
    "text", ["x", "123", "0" * 512, mini_qr("A1B2C3")[:-1] + "?", mini_qr("A1B2C3").replace("A1", "A2")]
)
def test_text_that_is_no_slip_is_unreadable(shop: Shop, text: str) -> None:
    assert check(shop, text)["verdict"] == "unreadable"


def test_payment_code_is_unreadable(shop: Shop) -> None:
    assert verdict(shop, shop.qr_code()["qr_data"]) == "unreadable"


def test_slip_of_a_wallet_without_reported_money_is_unknown(shop: Shop) -> None:
    found = check(shop, wallet_slip())
    assert (found["verdict"], found["bank"]) == ("unknown", "truemoney")


# --- the merchant's bank is asked --------------------------------------------------------------------


def answers(scb: FakeScb, code: dict[str, Any], **changes: Any) -> None:
    reference = thaiqr.parse(code["qr_data"]).reference1
    scb.on_slip(success(SLIP | {"ref1": reference, "transTime": "12:05:00"} | changes))


def test_transfer_that_only_the_bank_knows_is_valid_and_credits_nothing(live: Shop, scb: FakeScb) -> None:
    code = live.qr_code()
    answers(scb, code)
    found = check(live, mini_qr(SLIP["transRef"]))
    assert (found["verdict"], found["payment_id"], found["payer"]) == ("valid", code["payment_id"], None)
    assert (live.payment(code["payment_id"])["status"], BankTransaction.objects.count()) == ("pending", 0)
    assert Inquiry.objects.get().payment_id == code["payment_id"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"amount": 1499.99}, "wrong_amount"),
        ({"receiver": {"proxy": {"type": "BILLERID", "value": "010555000000009"}}}, "wrong_receiver"),
        ({"ref1": "NOBODYKNOWSTHIS00000"}, "unknown"),
        ({"transTime": "23:59:59"}, "unknown"),
    ],
)
def test_answer_of_the_bank_decides(live: Shop, scb: FakeScb, changes: dict[str, Any], expected: str) -> None:
    answers(scb, live.qr_code(), **changes)
    assert verdict(live, mini_qr(SLIP["transRef"])) == expected


def test_transfer_to_another_merchant_at_the_same_bank_is_a_wrong_receiver(live: Shop, scb: FakeScb) -> None:
    other = Shop(live.merchant, live.secret_key, live.http)
    code = other.qr_code()
    answers(scb, code, receiver={"proxy": {"type": "BILLERID", "value": "099400016550100"}}, ref1="")
    found = check(live, mini_qr(SLIP["transRef"]))
    assert {name: found[name] for name in NOTHING} == NOTHING


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error_response(404, 1104), "not_found"),
        (error_response(500), "unknown"),
        (Reply(closes=True), "unknown"),
        (success({}), "unknown"),
    ],
)
def test_bank_without_the_transfer_or_without_an_answer(
    live: Shop, scb: FakeScb, reply: Reply, expected: str
) -> None:
    scb.on_slip(reply)
    assert verdict(live, mini_qr(SLIP["transRef"])) == expected


# --- rules of the database ----------------------------------------------------------------------------


def refused(**fields: Any) -> bool:
    values = {"id": ids.new("slp_", clock.now()), "sending_bank": "014", "transaction_id": "A1"} | fields
    try:
        with transaction.atomic():
            SlipCheck.objects.create(checked_at=clock.now(), **values)
    except DatabaseError:
        return True
    return False


def test_database_refuses_wrong_verdicts(seller: Seller, other_shop: Shop) -> None:
    payment_id, _ = paid(seller)
    money, mine = seller.bank_transaction(payment_id), {"merchant": seller.shop.merchant}
    of_payment = {"payment_id": payment_id, "bank_transaction": money}
    assert not refused(**mine, verdict="valid", is_first=True, **of_payment)
    assert not refused(**mine, verdict="valid", claimed_payment_id=payment_id, **of_payment)
    for wrong in (
        mine | {"verdict": "valid", "is_first": True} | of_payment,  # a second first one
        mine | {"verdict": "valid", "is_first": True, "transaction_id": "A2"} | of_payment,
        mine | {"verdict": "valid"} | of_payment,
        mine | {"verdict": "valid", "claimed_payment_id": "pay_x"} | of_payment,
        mine | {"verdict": "valid", "is_first": True, "transaction_id": "A2"},
        mine | {"verdict": "wrong_receiver"} | of_payment,
        mine | {"verdict": "repeated", "is_first": True} | of_payment,
        mine | {"verdict": "genuine"} | of_payment,
        mine | {"verdict": ""},
        {"merchant": other_shop.merchant, "verdict": "repeated"} | of_payment,
        {"merchant": other_shop.merchant, "verdict": "unknown", "bank_transaction": money},
        {"verdict": "unknown"},
    ):
        assert refused(**wrong), wrong


@pytest.mark.django_db(transaction=True)
def test_of_two_checks_at_once_one_is_valid(seller: Seller) -> None:
    _, slip = paid(seller)
    verdicts = run_concurrently(*[lambda: verdict(seller.shop, slip)] * 4)
    assert Counter(verdicts) == {"valid": 1, "repeated": 3}


# --- pictures and forms --------------------------------------------------------------------------------


def picture(text: str, amount: str = "1,500.00", blur: float = 0.0, form: str = "PNG") -> bytes:
    """A slip as a bank draws it: what was paid in words, and the mini-QR below."""
    slip = Image.new("L", (720, 1280), 255)
    slip.paste(Image.effect_noise((720, 400), 30), (0, 0))
    slip.paste(Image.open(io.BytesIO(images.png(f"{amount} THB"))).convert("L").resize((60, 60)), (0, 420))
    slip.paste(0, (0, 420, 60, 480))  # the words
    slip.paste(Image.open(io.BytesIO(images.png(text))).convert("L").resize((300, 300)), (210, 900))
    file = io.BytesIO()
    slip.filter(ImageFilter.GaussianBlur(blur)).save(file, form)
    return file.getvalue()


def test_no_wrong_picture_of_thirty_is_valid(
    seller: Seller, other_shop: Shop, bank: SandboxBankClient
) -> None:
    rival, forms, found = Seller(other_shop, bank), ("PNG", "JPEG", "WEBP"), Counter[tuple[str, str]]()

    def see(kind: str, shown: bytes, **fields: Any) -> None:
        answer = send(seller.shop, shown, **fields)
        assert answer.status_code == 200, answer.content
        found[kind, answer.json()["verdict"]] += 1

    for number in range(6):
        form = forms[number % 3]
        payment_id, slip = paid(seller)
        see("real", picture(slip, form=form), payment_id=payment_id, amount="150000")
        other_id = seller.shop.qr_code()["payment_id"]
        see("repeated", picture(slip, form=form), **({"payment_id": other_id} if number % 2 else {}))
        if number % 3 == 0:  # the amount in the picture, another transfer, and a letter of the code
            see("altered", picture(paid(seller)[1], "15,000.00"), amount="1500000")
        elif number % 3 == 1:
            see("altered", picture(mini_qr(slip_id())), payment_id=other_id)
        else:
            see("altered", picture(slip[:-1] + chr(ord(slip[-1]) ^ 1)), payment_id=payment_id)
        see("another receiver", picture(paid(rival)[1], form=form))
        see("blurred", picture(paid(seller)[1], blur=12.0, form=form))
    assert found.total() == 30
    assert found == {
        ("real", "valid"): 6,
        ("repeated", "repeated"): 6,
        ("altered", "wrong_amount"): 2,
        ("altered", "unknown"): 2,  # the sandbox bank does not answer here
        ("altered", "unreadable"): 2,
        ("another receiver", "wrong_receiver"): 6,
        ("blurred", "unreadable"): 6,
    }


def test_same_form_under_a_key_is_replayed_and_another_picture_refused(seller: Seller) -> None:
    _, slip = paid(seller)
    key, shown = {"Idempotency-Key": "slip-1"}, picture(slip)
    first, again = send(seller.shop, shown, key), send(seller.shop, shown, key)
    assert first.json() == again.json()
    assert (again.headers["Idempotent-Replayed"], SlipCheck.objects.count()) == ("true", 1)
    assert send(seller.shop, picture(slip, form="JPEG"), key).status_code == 409


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "invalid_qr_data"),
        ({"qr_data": 5}, "invalid_qr_data"),
        ({"qr_data": ""}, "invalid_qr_data"),
        ({"qr_data": "x" * 513}, "invalid_qr_data"),
        ({"qr_data": "x", "amount": "150000"}, "invalid_amount"),
        ({"qr_data": "x", "amount": 1}, "invalid_amount"),
        ({"qr_data": "x", "payment_id": 5}, "invalid_payment_id"),
        ({"qr_data": "x", "payment_id": "pay_x"}, "payment_not_found"),
    ],
)
def test_wrong_field_is_named(shop: Shop, fields: dict[str, Any], code: str) -> None:
    answer = shop.post(SLIPS, fields)
    assert (answer.status_code in (400, 404), answer.json()["error"]["code"]) == (True, code)
    assert not SlipCheck.objects.exists()


def test_payment_of_another_merchant_cannot_be_named(shop: Shop, other_shop: Shop) -> None:
    answer = shop.post(SLIPS, {"qr_data": "x", "payment_id": other_shop.qr_code()["payment_id"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "payment_not_found")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"qr_data": "x"}, "invalid_qr_data"),
        ({"amount": "1500.00"}, "invalid_amount"),
        ({"amount": "9" * 5000}, "invalid_amount"),
        ({"amount": ["150000", "150000"]}, "invalid_request"),
        ({"payment_id": "a\0b"}, "invalid_request"),
    ],
)
def test_wrong_field_of_a_form_is_named(shop: Shop, fields: dict[str, Any], code: str) -> None:
    answer = send(shop, images.png("A"), **fields)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_form_without_a_picture_may_have_the_text(seller: Seller) -> None:
    _, slip = paid(seller)
    assert send(seller.shop, None, qr_data=slip).json()["verdict"] == "valid"
    assert send(seller.shop, None).json()["error"]["code"] == "invalid_qr_data"


def test_unknown_fields_of_a_form_are_named(shop: Shop) -> None:
    files = {"picture": SimpleUploadedFile("a", b"x"), "photo": SimpleUploadedFile("b", b"x")}
    key = {"Authorization": f"Bearer {shop.secret_key}"}
    answer = shop.http.post(SLIPS, {"paymentid": "x"} | files, headers=key)
    assert answer.status_code == 200
    assert all(name in answer.headers["Ignored-Parameters"] for name in ('"paymentid"', '"photo"'))


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=", b"--\r\n", 400),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="picture', 400),
        ("image/png", b"x", 415),
        ("application/x-www-form-urlencoded", b"qr_data=x", 415),
    ],
)
def test_malformed_form_is_no_server_error(shop: Shop, content_type: str, body: bytes, status: int) -> None:
    key = {"Authorization": f"Bearer {shop.secret_key}"}
    assert shop.http.post(SLIPS, body, content_type=content_type, headers=key).status_code == status


def test_form_with_too_many_fields_says_so(shop: Shop) -> None:
    many: dict[str, Any] = {f"field{number}": "x" for number in range(1001)}
    answer = send(shop, None, **many)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
    assert "too many fields" in answer.json()["error"]["message"]


def test_forms_are_for_slips_only(shop: Shop) -> None:
    key = {"Authorization": f"Bearer {shop.secret_key}"}
    assert shop.http.post("/v1/qr-codes", {"amount": "150000"}, headers=key).status_code == 415


def test_picture_above_the_limit_is_refused(shop: Shop) -> None:
    for size in (10_000_001, 10_100_000):
        answer = send(shop, bytes(size))
        assert (answer.status_code, "10 MB" in answer.json()["error"]["detail"]) == (413, True)


def test_busy_decoder_asks_to_try_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders.PICTURE_OF_MERCHANT, "wait_seconds", 0.0)
    with decoders.PICTURE_OF_PAYER.taken():
        answer = send(shop, images.png("A"))
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert not SlipCheck.objects.exists()


def test_checks_of_a_merchant_are_limited(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "RATE", RateLimit(per_second=0.01, burst=2))
    redis.try_call(lambda client: client.delete(f"rate:slips:{shop.merchant.id}"))
    assert [shop.post(SLIPS, {"qr_data": "x"}).status_code for _ in range(3)] == [200, 200, 429]


def test_check_of_a_merchant_stands_in_the_timeline(seller: Seller) -> None:
    payment_id, slip = paid(seller)
    check(seller.shop, slip)
    entries = seller.shop.get(f"/v1/payments/{payment_id}/timeline").json()["timeline"]
    (entry,) = [each for each in entries if each["type"] == "merchant.slip_checked"]
    assert entry["actor"].startswith("key:")


def test_merchant_that_shows_forged_slips_uses_up_its_own_questions_only(
    live: Shop, scb: FakeScb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "QUESTION_RATE", RateLimit(per_second=0.001, burst=2))
    neighbour = open_shop("Next door", mode="live")
    scb.connect(neighbour, "010555999999901")
    scb.on_slip(error_response(404, 1104))

    def show(shop: Shop) -> str:
        BankRateLimit.objects.update(available_at=Now(), slips_at=Now())
        return verdict(shop, mini_qr(SLIP["transRef"]))

    assert [show(live) for _ in range(4)] == ["not_found", "not_found", "unknown", "unknown"]
    assert show(neighbour) == "not_found"
