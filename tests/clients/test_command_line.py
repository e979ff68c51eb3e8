"""What `thaiqr` does without a service: settings, amounts, drawings, usage."""

import re
import stat
import typing
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from thaiqr.choices import EventType, Scenario
from thaiqr.cli import amounts, profiles, terminal_qr, triggers
from thaiqr.cli.listening import secret_of
from thaiqr.cli.session import Session

from tests.clients import drawings
from tests.clients.command_line import WIDTH, CommandLine

KEY = "tq_test_abcdefgh_secret"
NOWHERE = "http://127.0.0.1:1"
PAYLOAD = (
    "00020101021230570016A00000067701011201153110400394751010206REF0010304REF253037645406555.55"
    "5802TH62100706SCB001630437C6"
)
COMMANDS = [
    ["qr", "create"], ["qr", "get"], ["qr", "list"], ["qr", "expire"],
    ["payments", "create"], ["payments", "list"], ["payments", "get"], ["payments", "watch"],
    ["exceptions", "list"], ["exceptions", "accept"], ["exceptions", "return"],
    ["payment-links", "create"], ["payment-links", "list"], ["payment-links", "get"],
    ["payment-links", "deactivate"], ["open"], ["refund"],
    ["refunds", "create"], ["refunds", "list"], ["refunds", "get"], ["refunds", "cancel"], ["claim-link"],
    ["withdraw"], ["withdrawals", "create"], ["withdrawals", "list"], ["withdrawals", "get"],
    ["withdrawals", "cancel"], ["balance"], ["settlements", "list"], ["settlements", "get"], ["banks"],
    ["webhooks", "list"], ["webhooks", "get"], ["webhooks", "create"], ["webhooks", "change"],
    ["webhooks", "delete"], ["webhooks", "test"], ["webhooks", "secret"], ["webhooks", "rotate"],
    ["webhooks", "deliveries"], ["webhooks", "redeliver"], ["webhooks", "replay"],
    ["destinations", "list"], ["destinations", "get"], ["destinations", "create"],
    ["destinations", "test"], ["destinations", "delete"],
    ["events", "list"], ["events", "get"], ["events", "tail"], ["events", "resend"],
    ["listen"], ["trigger"], ["clock", "advance"], ["clock", "get"], ["clock", "reset"],
    ["requests", "tail"], ["requests", "get"], ["get"],
]  # fmt: skip


@pytest.fixture
def thaiqr(tmp_path: Path) -> CommandLine:
    return CommandLine(KEY, NOWHERE, tmp_path)


def test_help_names_every_command_within_80_columns(thaiqr: CommandLine) -> None:
    shown = thaiqr.ok("--help").stdout
    listed = re.findall(r"^  ([a-z-]+)  ", shown.partition("Commands:")[2], re.MULTILINE)
    assert listed == [*dict.fromkeys(name for name, *_ in COMMANDS), "lint", "verify", "configure"]
    assert "Exit codes" in shown
    assert max(len(line) for line in shown.splitlines()) <= WIDTH


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_json_and_profile(thaiqr: CommandLine, command: list[str]) -> None:
    shown = thaiqr.ok(*command, "--help").stdout
    assert "--json" in shown
    assert "--profile" in shown
    assert max(len(line) for line in shown.splitlines()) <= WIDTH


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["balance"], 4, "http://127.0.0.1:1/v1/balance: "),
        (["balance", "--nothing"], 2, "--nothing"),
        (["nothing"], 2, "nothing"),
        (["qr", "create"], 2, "--amount 150.00"),
        (["qr", "create", "--amount", "150.5"], 2, "150.5"),
        (["qr", "create", "--amount", "1", "--satang", "100"], 2, "not both"),
        (["qr", "create", "--amount", "1", "--metadata", "x"], 2, "KEY=VALUE"),
        (["refund", "pay_1"], 2, "--yes"),
        (["refund", "pay_1", "--yes", "--bank", "SCB"], 2, "--account"),
        (["trigger", "nonsense"], 2, "payment.succeeded"),
        (["listen"], 2, "--forward-to URL"),
        (["listen", "ftp://localhost/hook"], 2, "http://localhost:3000/hook"),
        (["listen", "/hook", "--forward-to", "/hook"], 2, "once"),
        (["payment-links", "create", "--amount-min", "1.5"], 2, "--amount-min '1.5'"),
        (["payments", "create", "--token", "tok_test_visa"], 2, "--amount 150.00"),
        (["payments", "create", "--amount", "1"], 2, "--token"),
        (["exceptions", "accept", "pay_1", "btx_1"], 2, "--yes"),
        (["exceptions", "return", "pay_1", "btx_1"], 2, "--yes"),
        (["get", "v1/balance"], 2, "PATH must begin with /"),
        (["get", "@example.com/"], 2, "PATH must begin with /"),
        (["balance", "--profile", "other"], 2, "'other'"),
    ],
)
@pytest.mark.slow
def test_mistakes_end_with_their_exit_code_and_say_what_to_do(
    thaiqr: CommandLine, arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thaiqr.attempts.FIRST_PAUSE", 0.001)
    done = thaiqr(*arguments)
    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr


def test_missing_key_is_not_authenticated(thaiqr: CommandLine) -> None:
    for env in ({"THAIQR_API_KEY": ""}, {"THAIQR_BASE_URL": ""}):
        done = thaiqr("balance", **env)
        assert done.code == 3
        assert "THAIQR_BASE_URL" in done.stderr


@pytest.mark.parametrize("command", [["trigger", "paid"], ["listen", "--forward-to", "http://127.0.0.1:9/"]])
@pytest.mark.slow
def test_live_keys_never_make_test_payments(tmp_path: Path, command: list[str]) -> None:
    done = CommandLine("tq_live_abcdefgh_secret", NOWHERE, tmp_path)(*command)
    assert done.code == 2
    assert "test keys only" in done.stderr


def test_profile_is_read_from_a_file_that_only_its_owner_reads(
    thaiqr: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("THAIQR_API_KEY", raising=False)
    for name, url in (("default", "http://one"), ('a "second" ร้าน', "http://two")):
        path = profiles.store(name, profiles.Login(KEY, url))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert profiles.find(None) == profiles.Login(KEY, "http://one")
    assert profiles.find('a "second" ร้าน').base_url == "http://two"
    monkeypatch.setenv("THAIQR_API_KEY", "of the environment")
    monkeypatch.setenv("THAIQR_BASE_URL", "http://env")
    assert profiles.find(None).base_url == "http://env"
    assert profiles.find("default") == profiles.Login(KEY, "http://one")
    path.chmod(0o640)
    done = thaiqr("balance", "--profile", "default")
    assert (done.code, "chmod 600" in done.stderr) == (2, True)


def test_malformed_profile_file_is_named(thaiqr: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "thaiqr" / "config.toml"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text("not toml")
    done = thaiqr("balance", "--profile", "default")
    assert (done.code, str(path) in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "satang"),
    [("150", 15_000), ("150.00", 15_000), ("1,500.05", 150_005), ("0.01", 1), ("2000000", 200_000_000)],
)
def test_amount_in_baht_is_read_as_satang(text: str, satang: int) -> None:
    assert amounts.satang_of(text, None) == satang


@pytest.mark.parametrize("text", ["", "1.5", "1.234", "1,50", "-1", "1e3", "๑", "1 000", "฿1", "NaN"])
def test_text_that_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="baht"):
        amounts.satang_of(text, None)


@pytest.mark.parametrize("invert", [False, True])
def test_drawing_without_colour_can_be_scanned(invert: bool) -> None:
    console = Console(file=utf8(), force_terminal=True, no_color=True)
    drawn = terminal_qr.draw(PAYLOAD, console, invert=invert).plain.splitlines()
    assert max(len(line) for line in drawn) <= WIDTH
    assert drawings.scan(drawn, ink_is_dark=invert) == PAYLOAD


def test_drawing_with_colour_is_black_on_white() -> None:
    console = Console(file=utf8(), force_terminal=True, color_system="standard")
    drawn = terminal_qr.draw(PAYLOAD, console)
    assert drawn.style == "#000000 on #ffffff"
    assert drawings.scan(drawn.plain.splitlines(), ink_is_dark=True) == PAYLOAD


def test_drawing_for_a_terminal_without_unicode_can_be_scanned() -> None:
    console = Console(file=utf8("ascii"), force_terminal=True, no_color=True)
    drawn = terminal_qr.draw(PAYLOAD, console).plain
    assert drawn.isascii()
    assert drawings.scan_ascii(drawn.splitlines()) == PAYLOAD


def utf8(encoding: str = "utf-8") -> StringIO:
    class File(StringIO):
        pass

    File.encoding = encoding
    return File()


def test_every_event_and_scenario_can_be_triggered() -> None:
    steps = triggers.Trigger(typing.cast(Session, type("NoSession", (), {"client": None})()), 100).steps()
    assert set(steps) == set(typing.get_args(EventType))
    assert set(triggers.SCENARIOS) == set(typing.get_args(Scenario))


def test_secret_of_listen_is_stable_and_of_one_key() -> None:
    assert secret_of(KEY) == secret_of(KEY) != secret_of(KEY + "2")
    assert secret_of(KEY).startswith("whsec_")
