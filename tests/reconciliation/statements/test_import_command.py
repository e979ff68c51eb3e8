"""`manage.py import_statement`: output, results file and exit code."""

import csv
import io
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, transaction

from audit_trail.acts import ActRefused
from core import clock
from reconciliation.models import BankTransaction, Resolution, Statement
from reconciliation.statements import importing
from tests.conftest import Shop
from tests.reconciliation.builders import decide
from tests.reconciliation.statements.statement_files import (
    BILLER,
    bot_file,
    credit_line,
    csv_file,
    detail,
    trailer,
)

pytestmark = [pytest.mark.django_db]


class Terminal(io.StringIO):
    """An output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def served(shop: Shop) -> Shop:
    return shop


def file_of(folder: Path, body: bytes, name: str = "day.txt") -> str:
    path = folder / name
    path.write_bytes(body)
    return str(path)


def run(*arguments: str, bank: str = "sandbox", watched: bool = False) -> tuple[str, str]:
    """Return the output and the error; the error is empty on success."""
    output = Terminal() if watched else io.StringIO()
    try:
        call_command("import_statement", *arguments, "--bank", bank, stdout=output, stderr=output)
    except CommandError as error:
        return output.getvalue(), str(error)
    return output.getvalue(), ""


def test_import_command_prints_one_summary_line_per_file(tmp_path: Path, served: Shop) -> None:
    path = file_of(tmp_path, bot_file(credit_line(served.qr_code(), clock.now()), detail()))
    output, trouble = run(path)
    assert output == f"{path}: 2 lines: 2 new (statement {Statement.objects.get().id})\n"
    assert not trouble
    assert "2 lines: 2 known" in run(path)[0]


@pytest.mark.slow
def test_importer_by_command_is_recorded_and_cannot_confirm_the_money(tmp_path: Path, served: Shop) -> None:
    _, trouble = run(file_of(tmp_path, bot_file(credit_line(served.qr_code(), clock.now()))), "--by", "malee")
    assert (trouble, Statement.objects.get().actor) == ("", "staff:malee")
    bank_transaction = BankTransaction.objects.get()
    with pytest.raises(ActRefused, match="You uploaded this statement"):
        decide("confirm", bank_transaction.id, note="It is there.")
    resolution = {
        "subject_id": bank_transaction.id,
        "type": "confirmed",
        "note": "x",
        "created_at": clock.now(),
    }
    with pytest.raises(DatabaseError, match="uploaded the statement"), transaction.atomic():
        Resolution.objects.create(actor="staff:malee", **resolution)
    decide("confirm", bank_transaction.id, actor="staff:somsri", note="It is there.")


def test_import_by_command_records_the_user_of_the_operating_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert run(file_of(tmp_path, bot_file(detail())))[1] == ""
    assert Statement.objects.get().actor == f"staff:{pwd.getpwuid(os.getuid()).pw_name}"


@pytest.mark.parametrize("name", ["", "x" * 151, "mal\nee"])
def test_import_by_command_refuses_a_name_that_cannot_be_recorded(tmp_path: Path, name: str) -> None:
    assert "--by" in run(file_of(tmp_path, bot_file(detail())), f"--by={name}")[1]
    assert not Statement.objects.exists()


def test_import_command_quiet_prints_nothing_without_errors(tmp_path: Path) -> None:
    assert run(file_of(tmp_path, bot_file(detail())), "--quiet") == ("", "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (bot_file(detail(amount="?")), "1 lines: 1 unreadable"),
        (bot_file(detail()[:255]), "Line 2 cannot be read: a line has 256 characters, this one 255."),
        (bot_file(*[detail(amount="?")] * 21), "And 1 more of the kind."),
        (bot_file(detail(), end=trailer()), "states 0 credits"),
        (bot_file(detail(), end=b""), "ends without a trailer"),
        (b"", "The file is empty."),
        (b"\x89PNG", "It is neither"),
        (b"biller_id,date\n", "Columns are missing"),
    ],
)
def test_import_command_fails_with_a_reason(tmp_path: Path, body: bytes, reason: str) -> None:
    path = file_of(tmp_path, body)
    output, trouble = run(path, "--quiet")
    assert reason in output
    assert path in output
    assert trouble == "Files with errors: 1 of 1."


@pytest.mark.slow
def test_repeated_import_command_reports_unreadable_lines_again(tmp_path: Path) -> None:
    path, results = file_of(tmp_path, bot_file(detail(amount="?"))), tmp_path / "results.csv"
    for _ in range(2):
        output, _ = run(path, "--results", str(results))
        assert "Line 2 cannot be read: the amount cannot be '000000000000?'." in output
        assert results.read_text().endswith(
            '"2","unreadable","","","the amount cannot be \'000000000000?\'"\n'
        )


@pytest.mark.slow
def test_import_command_continues_after_an_invalid_file(tmp_path: Path) -> None:
    bad, good = file_of(tmp_path, b"?"), file_of(tmp_path, bot_file(detail()), "good.txt")
    output, trouble = run(bad, str(tmp_path / "missing.txt"), good)
    assert trouble == "Files with errors: 2 of 3."
    assert "missing.txt: No such file or directory.\n" in output
    assert BankTransaction.objects.count() == 1


def test_import_command_writes_results_without_formulas(tmp_path: Path) -> None:
    name = f"2026-11-21,12:00:00,{BILLER},R1,,,1.00,credit,,"
    path = file_of(tmp_path, csv_file(name, "=1+1,,,,,,,,,"), "=day.csv")
    results = tmp_path / "results.csv"
    run(path, "--results", str(results))
    with results.open(newline="", encoding="utf-8") as file:
        header, first, second = csv.reader(file)
    assert header == ["file", "line", "result", "bank_transaction_id", "match_result", "why"]
    assert first == [path, "2", "new", BankTransaction.objects.get().id, "unmatched", ""]
    assert second == [path, "3", "unreadable", "", "", "the biller id cannot be ''"]


def test_import_command_never_overwrites_an_input_file_with_results(tmp_path: Path) -> None:
    body = bot_file(detail())
    path = file_of(tmp_path, body)
    assert run(path, "--results", str(tmp_path / "." / "day.txt"))[1].startswith("--results: this is a file")
    assert Path(path).read_bytes() == body


def test_import_command_escapes_formulas_in_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(tmp_path, bot_file(detail()), "=day.txt")
    monkeypatch.chdir(tmp_path)
    run("=day.txt", "--results", "results.csv")
    assert '"\'=day.txt","2","new"' in (tmp_path / "results.csv").read_text()


def test_import_command_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(bot_file(detail()))))
    assert run("-", "--quiet") == ("", "")
    assert Statement.objects.get().file_name == "-"


def test_import_command_accepts_undecodable_file_names(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))
    path.write_bytes(bot_file(detail()))
    assert not run(str(path))[1]
    assert Statement.objects.get().file_name == "\ufffd.txt"


@pytest.mark.slow
def test_import_command_shows_progress_only_on_a_terminal(tmp_path: Path) -> None:
    path = file_of(tmp_path, bot_file(detail()))
    assert "\r" not in run(path)[0]
    assert "100 %" in run(path, watched=True)[0]


def test_import_for_an_unknown_bank_is_refused(tmp_path: Path) -> None:
    assert (
        run(file_of(tmp_path, bot_file(detail())), bank="nobody")[1] == "No merchant has the bank 'nobody'."
    )


def test_import_command_fails_if_results_cannot_be_written(tmp_path: Path) -> None:
    trouble = run(file_of(tmp_path, bot_file(detail())), "--results", str(tmp_path / "no" / "r.csv"))[1]
    assert trouble.endswith("No such file or directory.")
    assert not BankTransaction.objects.exists()


@pytest.mark.parametrize(
    ("raised", "output"),
    [
        (KeyboardInterrupt(), "Interrupted."),
        (OperationalError("the server is gone\nat all"), "the server is gone."),
    ],
)
def test_interrupted_import_command_keeps_stored_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, output: str
) -> None:
    def end(*args: object, **kwargs: object) -> None:
        raise raised

    path = file_of(tmp_path, bot_file(detail()))
    with monkeypatch.context() as patch:
        patch.setattr(importing, "_apply", end)
        trouble = run(path)[1]
    assert output in trouble
    assert trouble.endswith("What is stored stays; import it again.")
    assert "1 known" in run(path)[0]


@pytest.mark.parametrize("form", ["bot", "csv"])
def test_import_command_uses_the_given_format(tmp_path: Path, form: str) -> None:
    body = (
        bot_file(detail()) if form == "csv" else csv_file(f"2026-11-21,12:00:00,{BILLER},R1,,,1.00,credit,,")
    )
    output, trouble = run(file_of(tmp_path, body), "--format", form)
    assert trouble
    assert "It is neither" in output or "2 unreadable" in output


def test_dry_run_prints_what_would_happen_and_imports_nothing(tmp_path: Path, served: Shop) -> None:
    code = served.qr_code()
    body = bot_file(credit_line(code, clock.now()), detail(), detail(amount="?"))
    path, results = file_of(tmp_path, body), tmp_path / "results.csv"
    output, error = run(path, "--dry-run", "--results", str(results))
    assert error == "Files with errors: 1 of 1."
    assert "1 Payments that succeed (1,500.00 THB)" in output
    assert "1 Exceptions: unknown reference (1,500.00 THB)" in output
    assert "3 lines. Nothing was imported." in output
    rows = csv.DictReader(results.read_text("utf-8").splitlines())
    assert [row["match_result"] for row in rows] == ["applied", "unmatched", ""]
    assert not Statement.objects.exists()
    assert not BankTransaction.objects.exists()


def test_undo_of_the_command_needs_a_reason_and_says_what_went(tmp_path: Path) -> None:
    run(file_of(tmp_path, bot_file(detail(), detail(amount="?"))))
    statement = Statement.objects.get()
    assert run("--undo", statement.pk)[1] == "--reason: say why, in at most 500 characters."
    output, error = run("--undo", statement.pk, "--reason", "Another shop", "--by", "malee")
    assert (error, "Exceptions of unreadable lines that close: 1." in output) == ("", True)
    assert set(Resolution.objects.values_list("actor", "type")) == {
        ("staff:malee", "undone"), ("staff:malee", "dismissed"),
    }  # fmt: skip
    again = run("--undo", statement.pk, "--reason", "Another shop")[1]
    assert again == "This import was undone already. Nothing changed."


def test_command_without_a_file_or_a_bank_says_what_is_missing() -> None:
    assert run()[1] == "Name the bank (--bank) and the files."
