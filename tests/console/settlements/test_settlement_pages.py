"""What staff read about money of acquirers: what is on the way, transfers, settlements and questions."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from banks import SettledItem
from payments.models import Payment
from settlements import on_the_way
from settlements.models import AcquirerTransfer, OpenQuestion, Settlement
from tests.conftest import SandboxBankClient, Shop
from tests.console.lists.test_navigation import client_with, menu_of
from tests.settlements.conftest import DAY, FEE, ReportingAcquirer, item_of
from tests.staff_acts import run_act, send_act

pytestmark = pytest.mark.slow

PAGE = "/admin/on-the-way/"
CHARGES = "/admin/payments/cardcharge/?on_the_way=sandbox"


def words(client: Client, path: str) -> str:
    """The text of a page below its menu."""
    page = client.get(path)
    assert page.status_code == 200, path
    main = page.text.partition("</nav>")[2].partition('id="content"')[2]
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", main)))


def sentences(client: Client, path: str) -> list[tuple[str, str]]:
    """The colour and the text of each sentence, without its links."""
    found = re.findall(r'<p class="lead (\w+)">(.*?)</p>', client.get(path).text)
    return [(tone, unescape(re.sub("<[^>]+>", "", text)).strip()) for tone, text in found]


def page_of(row: Any) -> str:
    return f"/admin/settlements/{row._meta.model_name}/{quote(row.pk)}/change/"


def test_page_says_what_is_on_the_way_and_since_when(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    assert sentences(admin_client, PAGE) == [
        ("good", "The sandbox bank owes nothing. Nothing is late."),
    ]
    charges = [acquirer.charge(shop.merchant, ago=ago) for ago in (2 * DAY, DAY)]
    page = words(admin_client, PAGE)
    owed = "The sandbox bank owes 1,921.88 THB of 2 card payments since 2026-11-19. Nothing is late."
    assert sentences(admin_client, PAGE)[0] == ("good", owed)
    assert "Gross 2,000.00 THB Fees 73.00 THB VAT of the fees 5.12 THB Net 1,921.88 THB" in page
    assert "The oldest 2026-11-19 12:00:00 2 days" in page
    acquirer.transfer(item_of(charges[0]))
    acquirer.read()
    assert "owes 960.94 THB of 1 card payment since 2026-11-20." in words(admin_client, PAGE)


def test_number_of_payments_leads_to_their_list(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    paid, owed = (acquirer.charge(shop.merchant) for _ in range(2))
    acquirer.transfer(item_of(paid))
    acquirer.read()
    assert f'<a href="{CHARGES}">1</a>' in admin_client.get(PAGE).text
    listed = admin_client.get(CHARGES).text
    assert (owed.pk in listed, paid.pk in listed) == (True, False)
    assert "960.94 THB" in listed


def test_refund_and_open_difference_are_in_what_is_owed(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=1)
    acquirer.read()
    assert sentences(admin_client, PAGE)[0] == (
        "wait",
        "The sandbox bank has paid all card payments. 0.01 THB remain on its account. 1 question is open.",
    )
    acquirer.charge(shop.merchant, ago=DAY)
    page = words(admin_client, PAGE)
    assert "Refunds, and differences of earlier transfers 0.01 THB Net 960.95 THB" in page


def test_late_transfer_and_its_question_are_on_the_page_with_their_age(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent", ago=3 * DAY)
    acquirer.read()
    (transfer,) = AcquirerTransfer.objects.all()
    sentence = (
        "The sandbox bank transfers 930.94 THB for 1 card payment. It should arrive by 2026-11-22 12:00:00."
    )
    assert sentences(admin_client, page_of(transfer)) == [("wait", sentence)]
    assert sentences(admin_client, PAGE)[0][0] == "good"
    clock.shift(2 * DAY)
    acquirer.read()
    clock.shift(timedelta(hours=3))
    tone, text = sentences(admin_client, PAGE)[0]
    assert tone == "bad"
    assert text.endswith("1 transfer is late. 1 question is open.")
    page = words(admin_client, PAGE)
    assert "Open transfers" in page
    assert "The transfer has not arrived in time -930.94 THB" in page
    assert "3 hours" in page
    tone, text = sentences(admin_client, page_of(transfer))[0]
    assert tone == "bad"
    assert "It should have arrived by 2026-11-22 12:00:00: ask the acquirer where it is." in text
    (settlement,) = Settlement.objects.all()
    tone, text = sentences(admin_client, page_of(settlement))[0]
    assert (tone, shop.merchant.name in text) == ("bad", True)
    assert "Late" in words(admin_client, "/admin/settlements/settlement/")


def test_page_of_a_transfer_has_its_settlements_items_and_questions(
    shop: Shop, other_shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    charges = [acquirer.charge(each.merchant) for each in (shop, other_shop)]
    acquirer.transfer(item_of(charges[0]), item_of(charges[1], fee=FEE + 100))
    acquirer.read()
    (transfer,) = AcquirerTransfer.objects.all()
    (tone, text), page = sentences(admin_client, page_of(transfer))[0], words(admin_client, page_of(transfer))
    assert (tone, "1 question is open. See the question." in text) == ("bad", True)
    assert (
        "What it pays out: 1,920.88 THB Price of the transfer, with VAT: 30.00 THB Net: 1,890.88 THB" in page
    )
    assert "1 1,000.00 THB 36.50 THB 2.56 THB 960.94 THB" in page, "the settlement of a merchant"
    assert "1,000.00 THB 37.50 THB 2.56 THB 959.94 THB" in page, "an item with the fee of the acquirer"
    source = admin_client.get(page_of(transfer)).text
    for part in (*charges, *Settlement.objects.all(), *OpenQuestion.objects.all()):
        assert quote(part.pk) in source
    for name in ("omise", "acquirer:", "sandbox<"):
        assert name not in source.partition('id="content"')[2]


def test_settlement_says_what_its_merchant_gets(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    charge = acquirer.charge(shop.merchant)
    acquirer.transfer(item_of(charge))
    acquirer.read()
    (settlement,) = Settlement.objects.all()
    sentence = f"{shop.merchant.name} gets 960.94 THB for 1 card payment. It arrived on 2026-11-20 12:00:00."
    assert sentences(admin_client, page_of(settlement)) == [("good", sentence)]
    assert quote(charge.pk) in admin_client.get(page_of(settlement)).text


def test_question_is_closed_from_its_sentence_with_an_answer(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=1)
    acquirer.read()
    clock.shift(2 * DAY)
    (question,) = OpenQuestion.objects.all()
    open_, closed = ("/admin/settlements/openquestion/?status=" + each for each in ("open", "closed"))
    what = "The transfer is not the sum of what it pays out: 0.01 THB less."
    assert sentences(admin_client, page_of(question)) == [
        ("bad", f"{what} It is open for 2 days. Close the question.")
    ]
    act = f"/admin/settlements/openquestion/{quote(question.pk)}/do/close/"
    assert f'<a href="{act}">Close the question</a>.</p>' in admin_client.get(page_of(question)).text
    send_act(admin_client, OpenQuestion, question.pk, "close", note="A satang was lost", is_booked="on")
    assert sentences(admin_client, page_of(question)) == [
        ("calm", f"{what} Closed on 2026-11-23 12:00:00: A satang was lost")
    ]
    shown = [question.pk in admin_client.get(each).text for each in (open_, closed)]
    assert shown == [False, True]


def test_question_about_money_of_a_failed_transfer_is_answered_by_choosing_it(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    charge = acquirer.charge(shop.merchant)
    failing = acquirer.transfer(item_of(charge), state="sent", ago=2 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=-failing.amount)
    acquirer.read()
    acquirer.change(failing, state="failed")
    acquirer.read()
    (question,) = OpenQuestion.objects.all()
    failed = AcquirerTransfer.objects.get(state="failed")
    values = {"note": "So they say", "failed_transfer": failed.pk}
    send_act(admin_client, OpenQuestion, question.pk, "failed-transfer", **values)
    assert "trsf_0" in words(admin_client, page_of(question))
    assert shop.payment(charge.pk)["settlement_id"] is not None


def test_failed_transfer_whose_item_the_later_one_lists_is_no_answer(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    dispute = SettledItem("adjustment", "dspt_1", "", -5_000, 0, 0, -5_000, "dispute.started.debit")
    failing = acquirer.transfer(item_of(acquirer.charge(shop.merchant)), dispute, state="sent", ago=2 * DAY)
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), dispute, short_by=-failing.amount)
    acquirer.read()
    acquirer.change(failing, state="failed")
    acquirer.read()
    question = OpenQuestion.objects.get(kind="amount_differs")
    values = {"note": "So they say", "failed_transfer": AcquirerTransfer.objects.get(state="failed").pk}
    page = run_act(admin_client, OpenQuestion, question.pk, "failed-transfer", **values)
    assert "the later transfer lists an item of it" in page
    assert OpenQuestion.objects.get(pk=question.pk).closed_at is None


def test_page_of_a_card_payment_says_where_its_money_is(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    charge = acquirer.charge(shop.merchant, ago=DAY)
    page = f"/admin/payments/payment/{quote(charge.pk)}/change/"
    assert "Settlement: On the way since 2026-11-20 12:00:00" in words(admin_client, page)
    acquirer.transfer(item_of(charge), ago=timedelta(hours=1))
    acquirer.read()
    (settlement,) = Settlement.objects.all()
    assert page_of(settlement) in admin_client.get(page).text
    ledger = words(admin_client, page).partition("Ledger")[2]
    assert "Owed by the sandbox bank -1,000.00 THB" in ledger
    assert " Fees of the sandbox bank 36.50 THB" in ledger
    assert "VAT of the fees of the sandbox bank 2.56 THB" in ledger
    assert "sandbox:" not in ledger
    assert ":sandbox" not in ledger


def test_payment_by_code_has_no_settlement(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    bank.notify(shop.qr_code())
    payment = Payment.objects.get()
    assert "Settlement:" not in words(admin_client, f"/admin/payments/payment/{quote(payment.pk)}/change/")


def test_page_shows_only_what_its_reader_may_view(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client
) -> None:
    acquirer.transfer(item_of(acquirer.charge(shop.merchant)), short_by=1)
    acquirer.read()
    acquirer.charge(shop.merchant, ago=DAY)
    reader = client_with("view_acquirertransfer")
    page = reader.get(PAGE).text
    assert "Open questions" not in page
    assert CHARGES not in page
    assert menu_of(reader, PAGE)["On the way"] == PAGE
    transfer = reader.get(page_of(AcquirerTransfer.objects.get())).text
    for part in ("questions", "settlements", "items"):
        assert f'id="{part}"' not in transfer
    assert "See the question" not in transfer


def test_page_needs_the_right_to_view_transfers(db: None) -> None:
    reader = client_with("view_settlement", "view_cardcharge")
    assert reader.get(PAGE).status_code == 403
    assert "On the way" not in menu_of(reader, "/admin/settlements/settlement/")


def test_pages_are_in_the_language_of_the_reader(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any
) -> None:
    acquirer.charge(shop.merchant, ago=DAY)
    page = admin_client.get(PAGE, headers={"accept-language": "th"}).text
    assert "ธนาคารจำลอง ค้างจ่าย 960.94 บาท จากการชำระด้วยบัตร 1 รายการ ตั้งแต่ 2026-11-20" in page


def test_sum_of_very_many_payments_is_at_least_that_of_the_oldest(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ago in (DAY, 2 * DAY):
        acquirer.charge(shop.merchant, ago=ago)
    monkeypatch.setattr(on_the_way, "MAX_PAYMENTS", 1)
    sentence = (
        "The sandbox bank owes at least 960.94 THB of 1+ card payment since 2026-11-19. Nothing is late."
    )
    assert sentences(admin_client, PAGE)[0] == ("good", sentence)
    assert "Card payments 1+" in words(admin_client, PAGE)
    assert "≥ 960.94 THB" in words(admin_client, "/admin/")
    live = sentences(admin_client, f"{PAGE}?mode=live")
    assert live == [("good", "Opn owes nothing. Nothing is late.")]
