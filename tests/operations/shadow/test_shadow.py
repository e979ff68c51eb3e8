"""A month of another gateway beside ours: what differs is named, nothing is invented or written."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.core.management import CommandError, call_command

from core import ids
from core.clock import BANGKOK
from operations.shadow.files import GatewayFiles
from payments import fee_terms
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.factories import PaymentFactory
from tests.operations.shadow.gateways import (
    PAYER,
    WRITERS,
    Sale,
    opn_csv,
    opn_webhooks,
    sale_of,
    stripe_csv,
    table,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
START = datetime(2026, 10, 1, 0, 5, tzinfo=BANGKOK)
PAYMENTS = 300


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(text: str, name: str = "october", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return written


def compare(
    shop: Shop, gateway: str, *files: Path, code: int = 0, month: str = "2026-10", **options: Any
) -> tuple[list[dict[str, Any]], str]:
    """The lines of the report, and what is said beside it. code: of the exit."""
    output, errors = io.StringIO(), io.StringIO()
    given = {"gateway": gateway, "merchant": shop.merchant.id, "month": month, "json": True} | options
    try:
        call_command("shadow", *map(str, files), stdout=output, stderr=errors, **given)
        exited = 0
    except CommandError as error:
        exited = error.returncode
        errors.write(str(error))
    assert exited == code, errors.getvalue()
    assert "Somchai" not in output.getvalue() + errors.getvalue()
    return [json.loads(line) for line in output.getvalue().splitlines()], errors.getvalue()


def found(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The differences: kind, reference, there and here."""
    names = ("kind", "reference", "there", "here")
    return [tuple(line[name] for name in names) for line in lines if not line["kind"].startswith("total")]


def paid(shop: Shop, reference: str | None, at: datetime, amount: int = 10_000, **fields: Any) -> Payment:
    made: Payment = PaymentFactory(
        merchant=shop.merchant,
        created_at=at,
        reference=reference,
        amount=amount,
        status="succeeded",
        completed_at=at,
        **{"fee": 100, "fee_vat": 7} | fields,
    )
    return made


def our_month(shop: Shop, bank: SandboxBankClient) -> list[Sale]:
    """Three hundred payments through the API, from the first minutes of October to its last ones."""
    with time_machine.travel(START - timedelta(days=2), tick=False) as clock:
        fee_terms.set_terms(
            shop.merchant,
            starts_on=START.date(),
            fixed=0,
            rate=165,
            vat_rate=700,
            now=START - timedelta(days=2),
        )
        for number in range(PAYMENTS):
            clock.move_to(START + number * (timedelta(days=31) - timedelta(minutes=10)) / PAYMENTS)
            code = shop.qr_code(amount=10_000 + 37 * number, reference=f"order-{number}")
            assert bank.notify(code).status_code == 200
    return [sale_of(payment) for payment in Payment.objects.order_by("created_at")]


def test_five_faults_are_found_in_each_form_and_none_is_invented(
    shop: Shop, bank: SandboxBankClient, write: Callable[..., Path]
) -> None:
    sales = our_month(shop, bank)
    assert len(sales) == PAYMENTS
    assert sales[-1].fee
    wrong = list(sales)
    wrong[40] = replace(sales[40], amount=sales[40].amount + 1)
    wrong[80] = replace(sales[80], at=sales[80].at + timedelta(minutes=47))
    wrong[120] = replace(sales[120], fee=sales[120].fee + 1)
    missing_there = wrong.pop(160)
    wrong.insert(200, Sale("order-new", 123_400, sales[200].at, 2_000, 140))
    for name, (gateway, write_sales) in WRITERS.items():
        rows = count_rows()
        assert not found(compare(shop, gateway, write(write_sales(sales)))[0]), name
        lines = compare(shop, gateway, write(write_sales(wrong)), code=1)[0]
        with_vat = gateway == "stripe"
        fees = [sale.fee + sale.fee_vat * with_vat for sale in (wrong[120], sales[120])]
        named = {(kind, reference): (there, here) for kind, reference, there, here in found(lines)}
        fee = {} if name == "2c2p_webhooks" else {("fee", "order-120"): tuple(fees)}
        assert named == fee | {
            ("amount", "order-40"): (wrong[40].amount, sales[40].amount),
            ("time", "order-80"): (int(wrong[80].at.timestamp()), int(sales[80].at.timestamp())),
            ("missing there", "order-160"): (None, missing_there.amount),
            ("missing here", "order-new"): (123_400, None),
        }, name
        assert len(named) == len(found(lines))
        assert count_rows() == rows


def count_rows() -> dict[str, int]:
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.managed
    }


def test_totals_are_of_both_sides(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    paid(shop, "b", at, 20_000)
    lines, _ = compare(shop, "opn", write(opn_csv([Sale("a", 10_000, at, 100, 7)])), code=1)
    totals = {
        line["kind"]: (line["there"], line["here"]) for line in lines if line["kind"].startswith("total")
    }
    assert totals == {
        "total payments": (1, 2),
        "total amount": (10_000, 30_000),
        "total fees": (107, 214),
        "total net": (9_893, 29_786),
    }


def test_report_for_people_names_both_payments_and_the_line(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    payment = paid(shop, "a", at)
    file = write(opn_csv([Sale("a", 10_001, at + timedelta(hours=1), 100, 7)]), "october.csv")
    output = io.StringIO()
    with pytest.raises(CommandError, match="Differences: 2"):
        call_command(
            *("shadow", str(file), "--gateway", "opn", "--merchant", shop.merchant.id, "--month", "2026-10"),
            stdout=output,
        )
    names = f"{payment.id} chrg_a a october.csv line 2"
    assert output.getvalue().splitlines()[:3] == [
        f"time: {names} there 2026-09-30T18:05:00.000Z, here 2026-09-30T17:05:00.000Z",
        f"amount: {names} there 100.01 THB, here 100.00 THB",
        "total payments: there 1, here 1",
    ]


def test_payment_at_the_end_of_the_month_may_be_of_the_next_one_there(
    shop: Shop, write: Callable[..., Path]
) -> None:
    end = datetime(2026, 10, 31, 23, 59, 50, tzinfo=BANGKOK).astimezone(UTC)
    paid(shop, "a", end)
    paid(shop, "b", end + timedelta(seconds=30))
    sales = [Sale("a", 10_000, end + timedelta(seconds=30), 100, 7), Sale("b", 10_000, end, 100, 7)]
    assert not found(compare(shop, "opn", write(opn_csv(sales)))[0])
    assert not found(compare(shop, "opn", write(opn_csv(sales)), month="2026-09")[0])


def test_reference_that_is_used_each_day_keeps_its_days_apart(shop: Shop, write: Callable[..., Path]) -> None:
    days = [START.astimezone(UTC) + timedelta(days=day) for day in range(-5, 25)]
    for at in days:
        paid(shop, "table 5", at)
    sales = [Sale("table 5", 10_000, at, 100, 7) for at in days]
    text = opn_csv(sales[:10] + sales[11:]).replace("chrg_table 5", "chrg_{}")
    text = "".join(line.format(number) for number, line in enumerate(text.splitlines(keepends=True)))
    lines, _ = compare(shop, "opn", write(text), code=1)
    # Texts with a space are not shown, because they may be names.
    assert found(lines) == [("missing there", "", None, 10_000)]


def test_unpaid_there_is_another_status(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    PaymentFactory(merchant=shop.merchant, created_at=at, reference="b", amount=10_000)
    sales = [
        Sale("a", 10_000, at, 100, 7, is_paid=False),
        Sale("b", 10_000, at),
        Sale("c", 10_000, at, is_paid=False),
    ]
    for text in (opn_csv(sales), opn_webhooks(sales)):
        lines, _ = compare(shop, "opn", write(text), code=1)
        assert sorted(found(lines)) == [("status", "a", 0, 1), ("status", "b", 1, 0)]


def test_without_a_reference_amount_and_time_decide(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, None, at)
    paid(shop, "b", at + timedelta(minutes=3), 20_000)
    paid(shop, "c", at, 30_000)
    sales = [
        Sale("x", 10_000, at + timedelta(minutes=5), 100, 7),
        Sale("", 20_000, at, 100, 7),
        Sale("y", 30_000, at),
    ]
    lines, _ = compare(shop, "opn", write(opn_csv(sales)), code=1)
    # Two references are two payments, although amount and time are equal.
    assert sorted(found(lines)) == [("missing here", "y", 30_000, None), ("missing there", "c", None, 30_000)]


def test_reference_may_be_our_id_as_in_charges_of_cards(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    payment = paid(shop, "a", at)
    assert not found(compare(shop, "opn", write(opn_webhooks([Sale(payment.id, 10_000, at, 100, 7)])))[0])


def test_another_column_may_have_the_reference(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    text = stripe_csv([Sale("a", 10_000, at, 100, 7)]).replace(
        "payment_metadata[order_id]", "payment_metadata[cart]"
    )
    compare(shop, "stripe", write(text), minutes=0)
    lines, said = compare(shop, "stripe", write(text), reference="payment_metadata[cart]", minutes=0)
    assert not found(lines)
    assert "Rows of another kind than payments: 1" in said
    assert (
        "Columns that nothing reads: balance_transaction_id, available_on_utc, description, customer_name"
        in said
    )


def test_fee_that_only_one_side_knows(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at, fee=None, fee_vat=None)
    lines, _ = compare(shop, "opn", write(opn_csv([Sale("a", 10_000, at, 100, 7)])), code=1)
    assert found(lines) == [("fee", "a", 100, None), ("fee_vat", "a", 7, None)]
    lines, _ = compare(shop, "2c2p", write(WRITERS["2c2p_webhooks"][1]([Sale("a", 10_000, at)])))
    assert [line["there"] for line in lines if line["kind"] == "total fees"] == [None]


def test_webhooks_and_report_of_the_same_payments_complete_each_other(
    shop: Shop, write: Callable[..., Path]
) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    sales = [Sale("a", 10_000, at, 101, 7)]
    webhooks, report = (write(WRITERS[f"2c2p_{kind}"][1](sales), kind) for kind in ("webhooks", "csv"))
    lines, _ = compare(shop, "2c2p", webhooks, report, code=1)
    assert found(lines) == [("fee", "a", 101, 100)]
    assert [line["there"] for line in lines if line["kind"] == "total payments"] == [1]


def test_files_as_excel_saves_them(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "ร้าน-1", at, 123_456_00)
    text = opn_csv([Sale("ร้าน-1", 123_456_00, at, 100, 7)])
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "cp874"):
        body = f"\ufeff{text}" if encoding == "utf-16-le" else text
        assert not found(compare(shop, "opn", write(body, encoding=encoding))[0])
    row = {
        "Charge Id": "chrg_1", "Amount": "123.456,00", "Fees": "1,00", "Vat": "0,07", "Order id": "ร้าน-1",
        "Date": "01/10/2026 00:05:00", "Name": PAYER,
    }  # fmt: skip
    for delimiter in (";", "\t"):
        assert not found(compare(shop, "opn", write(table([row], delimiter)))[0])


@pytest.mark.parametrize(
    "at",
    [
        "1970-01-01T00:00:00Z",
        "2100-12-31 23:59:59",
        "0001-01-01T00:00:00+07:00",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_time_far_away_is_of_no_month(shop: Shop, write: Callable[..., Path], at: str) -> None:
    text = f"id,amount,paid_at\nc1,100.00,{at}\n"
    assert not found(compare(shop, "opn", write(text))[0])


@pytest.mark.parametrize(
    ("option", "message"),
    [({"minutes": -1}, "--minutes is less than 0."), ({"month": "2026-13"}, "--month is not a month")],
)
def test_option_that_means_nothing_is_refused(
    shop: Shop, write: Callable[..., Path], option: dict[str, Any], message: str
) -> None:
    text = "id,amount,paid_at\nc1,100.00,2026-10-01 00:00:00\n"
    assert message in compare(shop, "opn", write(text), code=2, **option)[1]


def test_reference_with_any_character_is_looked_for(shop: Shop, write: Callable[..., Path]) -> None:
    paid(shop, "a", at := START.astimezone(UTC))
    sales = [Sale(text, 10_000, at, 100, 7) for text in ("a\0", "'\"%_\\", "😀" * 300, "\u202e", "ร้าน")]
    for text in (opn_csv(sales), opn_webhooks(sales).replace("ร้าน", "\\ud800")):
        lines, _ = compare(shop, "opn", write(text), code=1)
        assert [each[0] for each in found(lines)] == ["missing here"] * 4


@pytest.mark.parametrize(
    ("gateway", "text", "message"),
    [
        ("opn", "", "line 1: columns are missing: id or charge id; amount; paid_at or created_at or date"),
        ("opn", "id,amount\nc1,1.00\n", "line 1: columns are missing: paid_at or created_at or date"),
        ("opn", "id,amount,AMOUNT,paid_at\nc1,1,2,\n", "line 1: columns are there twice: AMOUNT"),
        ("opn", "id,amount,paid_at\nc1,Somchai,2026-10-01T00:00:00Z\n", "line 2, column amount: "),
        ("opn", "id,amount,paid_at\nc1,1.00\n", "line 2, column paid_at: "),
        ("opn", "id,amount,paid_at\n,1.00,2026-10-01T00:00:00Z\n", "line 2, column id: "),
        ("opn", "id,Amount,paid_at\nc1,1,31/02/2026 00:00:00\n", "line 2, column paid_at: "),
        ("opn", "id,amount,paid_at,fee\nc1,1,2026-10-01T00:00:00Z,1e9\n", "line 2, column fee: "),
        (
            "opn",
            "id,amount,paid_at\nc1,1,2569-10-01T00:00:00Z\n",
            "column paid_at: 2569 is a year of the Buddhist",
        ),
        ("opn", 'id,amount,paid_at\nc1,"1,2026\n', "line 2 has a quote"),
        ("opn", "id,amount,paid_at\n" + "x" * 70_000, "longer than 65536 characters"),
        ("stripe", '{"data"', "line 1: it is no webhook"),
        ("stripe", "\n{}\n[]\n", "line 3: it is no webhook"),
        ("stripe", '{"a": ' + "[" * 60_000, "line 1: it is no webhook"),
        ("stripe", '{"a": "' + "x" * 70_000 + '"}', "line 1: it is no webhook"),
        ("2c2p", '{"payload": "a.b.c"}', "line 1: it is no webhook"),
        ("2c2p", '{"payload": 5}', "line 1: it is no webhook"),
        ("2c2p", '{"invoiceNo": "1", "amount": {"a": 1}, "transactionDateTime": 7}', ""),
        (
            "stripe",
            '{"data": {"object": {"object": "charge", "id": "\\ud800", "amount": 9' + "9" * 30 + "}}}",
            "amount",
        ),
    ],
)
def test_file_that_cannot_be_read_is_named_with_line_and_column(
    shop: Shop, write: Callable[..., Path], gateway: str, text: str, message: str
) -> None:
    lines, said = compare(shop, gateway, write(text), code=2 if message else 0)
    assert message.lower() in said.lower()
    assert len(lines) in (0, 4)


def test_what_cannot_be_compared_is_refused(shop: Shop, tmp_path: Path, write: Callable[..., Path]) -> None:
    file = write(opn_csv([Sale("a", 100, START)]))
    assert "no month" in compare(shop, "opn", file, code=2, month="october")[1].replace("not a", "no")
    assert "does not exist" in compare(shop, "opn", file, code=2, merchant=ids.new("mch_", START))[1]
    assert "No such file" in compare(shop, "opn", tmp_path / "none", code=2)[1]


def test_other_merchants_are_not_read(shop: Shop, other_shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    theirs = paid(other_shop, "a", at)
    sales = [Sale("a", 10_000, at), Sale(theirs.id, 10_000, at)]
    lines, _ = compare(shop, "opn", write(opn_csv(sales)), code=1)
    assert sorted(found(lines)) == [
        ("missing here", "a", 10_000, None),
        ("missing here", theirs.id, 10_000, None),
    ]


def test_examples_that_2c2p_publishes(write: Callable[..., Path]) -> None:
    """Of its reconcile report and its backend response, in baht."""
    report = (
        "2C2P2026062201,13,H,test,0,14/05/2026,test,22/06/2026,000000,00/00/00,000000,702702000000000,"
        "00000000000000000000,00000000000000000000,000,000,000,1751.01,0.00,0.00,52.86,3.69,,,,,,,1.58,1696.04,"
        "0.00,THB,000000,0,0\n"
        "2C2P2026062201,5,D,test,0,14/05/2026,test,05/05/2026,130426,05/05/2026,000000,702702000000000,"
        "GSC12300062,,001,VI,CONOTOXIA SP Z OO,1600.00000,0.00000,0.00000,48.00000,3.36000,2C2P-260505-0001,"
        "06/05/2026,49.20000,3.44000,52.64000,,1.44000,1550.08000,0.00000,THB,279948,07,411111XXXXXX1111,"
        '"chai chee #08-08, #08-09",zhen ming\n'
    )
    response = {
        "merchantID": "JT04",
        "invoiceNo": "280520075921",
        "accountNo": "411111XXXXXX1111",
        "amount": "230.87",
        "currencyCode": "THB",
        "transactionDateTime": "20200528080508",
        "respCode": "0000",
    }
    files = GatewayFiles("2c2p")
    found = [row for text in (report, json.dumps(response)) for row in files.read(write(text))]
    times = [
        int(datetime(*at, tzinfo=BANGKOK).timestamp())
        for at in ((2026, 5, 5, 13, 4, 26), (2020, 5, 28, 8, 5, 8))
    ]
    paid_by_card = (160_000, True, times[0], 4_800, 336, 160_000 - 4_800 - 336, "october line 2")
    assert found == [
        ("GSC12300062", "GSC12300062", *paid_by_card),
        ("280520075921", "280520075921", 23_087, True, times[1], None, None, None, "october line 1"),
    ]


@pytest.mark.parametrize("first", [True, False])
def test_payment_without_a_reference_may_be_of_the_next_month_there(
    shop: Shop, write: Callable[..., Path], first: bool
) -> None:
    end = datetime(2026, 10, 31, 23, 59, 50, tzinfo=BANGKOK).astimezone(UTC)
    here, there = end, end + timedelta(seconds=30)
    paid(shop, None, here if first else there)
    sales = [Sale("x", 10_000, there if first else here, 100, 7)]
    for month in ("2026-10", "2026-11"):
        assert not found(compare(shop, "opn", write(opn_csv(sales)), month=month)[0]), month


def test_payment_of_the_next_month_takes_none_of_this_one(shop: Shop, write: Callable[..., Path]) -> None:
    start = datetime(2026, 10, 1, tzinfo=BANGKOK).astimezone(UTC)
    for seconds in (-60, 70):
        paid(shop, None, start + timedelta(seconds=seconds))
    sales = [Sale("x", 10_000, start + timedelta(seconds=60), 100, 7)]
    assert not found(compare(shop, "opn", write(opn_csv(sales)))[0])


def test_payment_that_failed_has_no_time_of_payment(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    time = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    text = "id,amount,status,metadata[order_id],paid_at,created_at\n"
    text += f"c1,100.00,successful,a,{time},{time}\nc2,100.00,failed,b,,{time}\nc3,100.00,expired,c,,\n"
    assert not found(compare(shop, "opn", write(text))[0])


def test_amount_may_be_a_number_with_decimals(shop: Shop, write: Callable[..., Path]) -> None:
    at = START.astimezone(UTC)
    paid(shop, "a", at, 23_087)
    event = {
        "invoiceNo": "a",
        "amount": 230.87,
        "currencyCode": "THB",
        "transactionDateTime": f"{at.astimezone(BANGKOK):%Y%m%d%H%M%S}",
        "respCode": "0000",
    }
    assert not found(compare(shop, "2c2p", write(json.dumps(event)))[0])


def test_sum_of_a_hostile_file_is_no_fault(shop: Shop, write: Callable[..., Path]) -> None:
    rows = (f"c{number},{'9' * 15},2026-10-02T00:00:00Z" for number in range(100))
    compare(shop, "opn", write("\n".join(["id,amount,paid_at", *rows])), code=2)


def test_date_of_digits_is_no_number_of_seconds(shop: Shop, write: Callable[..., Path]) -> None:
    said = compare(shop, "opn", write("id,amount,date\nc1,1.00,20261001\n"), code=2)[1]
    assert "line 2, column date" in said


def test_nothing_of_a_file_controls_the_terminal(shop: Shop, write: Callable[..., Path]) -> None:
    for time, code in (("2026-11-30T00:00:00Z", 0), ("soon", 2)):
        text = f'id,amount,pa\x1bid_at\x07,"\x1b]0;owned\x07\x9b1m"\nc1,1.00,{time},\n'
        said = compare(shop, "opn", write(text, "\x1b[2J"), code=code)[1]
        assert ("owned" if code == 0 else "column paid_at") in said
        assert not set(said) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.parametrize("name", ["opn_csv", "opn_webhooks"])
def test_reference_that_no_file_has_is_refused(shop: Shop, write: Callable[..., Path], name: str) -> None:
    """Amount and time alone would pair payments with other references, and say that all is equal."""
    at = START.astimezone(UTC)
    paid(shop, "a", at)
    file = write(WRITERS[name][1]([Sale("b", 10_000, at, 100, 7)]))
    said = compare(shop, "opn", file, reference="metadata[oder_id]", code=2)[1]
    assert "No file has metadata[oder_id]" in said
