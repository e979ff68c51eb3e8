"""`thaiqr-server install` with programs of Debian that only note how they were called.

`make drill-install` carries it out with the real ones.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config.command_line import parser
from config.deployment import install
from config.deployment.install import Installer
from tests.stack import ROOT

ANSWERS = {
    "domain": "pay.shop.example",
    "email": "ops@shop.example",
    "staff_networks": "203.0.113.0/24 2001:db8::/32",
    "staff_name": "somsri",
    "staff_email": "somsri@shop.example",
    "backups": "/mnt/backups",
}
FAKED = (
    "systemctl", "certbot", "nginx", "useradd", "id", "runuser", "chown", "thaiqr-admin", "ln", "rm", "diff",
    "pgbackrest", "redis-server", "psql",
)  # fmt: skip
# Each notes its arguments and input. A line in `fails` makes the programs fail that begin so.
FAKE = """#!/bin/sh
called="$(basename "$0") $*"
echo "$called" >> "$LOG/calls"
case "$called" in *"sh -s") env >> "$LOG/environ"; cat >> "$LOG/input";; esac
while read -r prefix; do case "$called" in "$prefix"*) exit 1;; esac; done < "$LOG/fails"
test ! -e "$LOG/printed" || case "$called" in *psql*) cat "$LOG/printed";; esac
"""
# `install` and `cp` make what is below the folder of the test, without owners.
INSTALL = """#!/bin/sh
echo "install $*" >> "$LOG/calls"
for last; do :; done
case "$*" in *" -d "*) exit 0;; esac
case "$last" in "$LOG"/*) : > "$last";; esac
"""
COPY = """#!/bin/sh
echo "cp $*" >> "$LOG/calls"
"""


class Machine:
    """The folder with /etc, and what was called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.etc = folder, folder / "etc"
        (folder / "fails").write_text("id thaiqr\nsystemctl is-enabled\n")

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    def install(self, before_restore: bool = False, /, **changes: str) -> None:
        answers = {name: answer for name, answer in {**ANSWERS, **changes}.items() if answer}
        Installer(answers, {"CA_BUNDLE": "/etc/our.pem"}, self.etc).run(before_restore=before_restore)

    def settings(self) -> dict[str, str]:
        lines = (self.etc / "thai-qr-payments/settings.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {**dict.fromkeys(FAKED, FAKE), "install": INSTALL, "cp": COPY}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path))
    monkeypatch.chdir(ROOT)
    return Machine(tmp_path)


def position(calls: list[str], part: str) -> int:
    return next(number for number, call in enumerate(calls) if part in call)


def test_new_machine_gets_all_in_order(machine: Machine) -> None:
    machine.install()
    calls = machine.calls()
    order = [
        "useradd", "ln -sfn", "cp -r deploy/systemd/.", "daemon-reload", "settings.env", "passphrase.conf",
        "certbot", "nginx -t", "sh -s", "max_connections", "restart postgresql@15-main", "stanza-create",
        "enable --now backup-thaiqr@full.timer", "start thaiqr-migrate", "enable --now thaiqr-web.socket",
        "invite_superuser somsri somsri@shop.example", "thaiqr-admin check",
    ]  # fmt: skip
    found = [position(calls, part) for part in order]
    assert found == sorted(found)
    names = re.findall(r"thaiqr-[\w@]+", calls[position(calls, "enable --now thaiqr-web.socket")])
    units = {path.name.split("@")[0].split(".")[0] for path in (ROOT / "deploy/systemd").glob("*.service")}
    assert {name.split("@")[0] for name in names} == units - {"thaiqr-migrate"}


def test_settings_have_the_answers_new_secrets_and_the_password_that_the_role_gets(machine: Machine) -> None:
    machine.install()
    found = machine.settings()
    assert (found["BASE_URL"], found["ALLOWED_HOSTS"]) == ("https://pay.shop.example", "pay.shop.example")
    assert found["CA_BUNDLE"] == "/etc/our.pem"
    password = found["DATABASE_URL"].split(":")[2].split("@")[0]
    assert len(password) == 48
    environ = (machine.folder / "environ").read_text()
    assert f"THAIQR_DATABASE_PASSWORD={password}\n" in environ
    assert "CREATE ROLE thaiqr LOGIN" in (machine.folder / "input").read_text()
    assert not [call for call in machine.calls() if password in call], "arguments are open to all users"
    assert all(len(found[name]) >= 44 for name in install.new_secrets())


def test_files_get_their_rights_before_their_content(machine: Machine) -> None:
    machine.install()
    calls = [call for call in machine.calls() if "/dev/null" in call]
    rights = {
        Path(call.split()[-1]).name.removesuffix(".part"): call.split(" /dev/null")[0] for call in calls
    }
    assert rights == {
        "migration.env": "install -m 600",
        "settings.env": "install -m 640 -g thaiqr",
        "passphrase.conf": "install -m 600",
        "pgbackrest.conf": "install -o postgres -m 640",
        "thaiqr.conf": "install -m 644",
    }


def test_proxy_lets_only_the_networks_of_staff_into_the_console(machine: Machine) -> None:
    machine.install()
    text = (machine.etc / "nginx/sites-available/thaiqr.conf").read_text()
    assert "server_name pay.shop.example;" in text
    assert "        allow 203.0.113.0/24;\n        allow 2001:db8::/32;\n        deny all;" in text
    assert not re.search(r"^\s+allow 192\.0\.2\.|^[^#]*pay\.example\.com", text, re.M)


def test_backups_go_to_the_place_of_the_answer(machine: Machine) -> None:
    machine.install()
    text = (machine.etc / "pgbackrest/pgbackrest.conf").read_text()
    assert re.findall(r"^repo1-path=(.*)$", text, re.M) == ["/mnt/backups"]


def test_second_run_keeps_what_is_there_and_restarts_the_processes(machine: Machine) -> None:
    machine.install()
    machine.calls()
    before = {path: path.read_bytes() for path in machine.etc.rglob("*") if path.is_file()}
    (machine.folder / "fails").write_text("")
    (machine.folder / "printed").write_text("1\n")
    machine.install(**dict.fromkeys(ANSWERS, ""))  # it asks nothing
    assert {path: path.read_bytes() for path in machine.etc.rglob("*") if path.is_file()} == before
    calls = machine.calls()
    assert position(calls, "start thaiqr-migrate") < position(calls, "restart thaiqr-web thaiqr-worker@*")
    for part in ("useradd", "certbot", "sh -s", "postgresql@15-main", "stanza-create", "enable", "invite"):
        assert not [call for call in calls if part in call and "is-enabled" not in call], part


def test_failed_step_ends_it_and_the_next_run_goes_on(machine: Machine) -> None:
    fails = machine.folder / "fails"
    fails.write_text(f"{fails.read_text()}certbot\n")
    with pytest.raises(SystemExit, match="Repair the cause, and run install again: certbot certonly"):
        machine.install()
    settings = machine.settings()
    machine.calls()
    fails.write_text("id thaiqr\nsystemctl is-enabled\n")
    machine.install()
    assert machine.settings() == settings
    assert any(call.startswith("certbot") for call in machine.calls())


def test_machine_for_a_restore_stops_before_the_database(machine: Machine) -> None:
    with pytest.raises(SystemExit, match="Copy these files from the safe first: "):
        machine.install(True)
    (machine.etc / "thai-qr-payments").mkdir(parents=True)
    (machine.etc / "thai-qr-payments/settings.env").write_text("SECRET_KEY=kept\n")
    machine.calls()
    machine.install(True)
    assert machine.settings() == {"SECRET_KEY": "kept"}
    calls = machine.calls()
    assert position(calls, "nginx -t") > position(calls, "passphrase.conf")
    for part in ("sh -s", "stanza-create", "thaiqr-migrate", "enable --now"):
        assert not [call for call in calls if part in call], part


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("domain", "pay.example.com; rm"), ("domain", "localhost"), ("email", "nobody"),
        ("staff_networks", "everybody"), ("staff_networks", "0.0.0.0/0; allow all"), ("staff_name", "-x"),
        ("staff_email", "a@b c.example"), ("backups", "backups"), ("backups", "/mnt/$(id)"),
    ],
)  # fmt: skip
def test_wrong_answer_is_refused_by_its_name_and_changes_nothing(
    machine: Machine, name: str, answer: str
) -> None:
    with pytest.raises(SystemExit, match=f"^--{name.replace('_', '-')} is not valid: "):
        machine.install(False, **{name: answer})
    assert (machine.calls(), list(machine.folder.glob("etc/*"))) == ([], [])


def test_missing_answer_and_missing_program_are_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="--staff-email is missing: the email address of the first member"):
        machine.install(staff_email="")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match="Missing: certbot, nginx, pgbackrest, psql, redis-server"):
        machine.install()


def test_answers_come_from_flags_or_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSTALL_DOMAIN", "pay.shop.example")
    options: Any = parser().parse_args(["install", "--email", "ops@shop.example", "--set", "RATE_LIMIT=5"])
    assert (options.domain, options.email) == ("pay.shop.example", "ops@shop.example")
    assert options.set == [("RATE_LIMIT", "5")]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_somebody_else_than_root_is_refused() -> None:
    code = "import os; from config import command_line; os.setuid(65534); command_line.main(['install'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "thaiqr-server install: run it as root\n")
