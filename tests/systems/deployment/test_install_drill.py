"""The guide is carried out in an empty Debian 12 with systemd, from the first package to a restore.

`make drill-install` runs it as root in some minutes, and prints the seconds of each step. It needs
debootstrap and systemd-container. Two things are not those of the guide: an authority of ours signs the
certificate, and flags answer what `install` asks.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from apidocs.guide.pages import PAGES
from config.version import VERSION
from tests.flows.guide_reader import BLOCK, COMMANDS
from tests.systems.deployment import installation
from tests.systems.deployment.debian_root import PROGRAMS, DebianRoot

FOLDER = os.environ.get("INSTALL_DRILL", "")
BOOT_SECONDS = 1800
DRILL = Path(__file__).with_name("drill")
BUILT_ELSEWHERE, NEEDS_AN_ENGINE = "make package", "docker compose"
ANSWERS = (
    " --domain pay.example.com --email ops@example.com --staff-networks '192.0.2.0/24' --staff-name somsri"
    " --staff-email somsri@example.com --backups /srv/backups --set NIGHTLY_JOBS=import_statements=00:00"
    " --set CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt"
)
NEW_DESCRIPTION, NEW_LINE = "Web of the new release", "# A line of the new release"
NEW_RELEASE = {
    "pyproject.toml": (f'version = "{VERSION}"', 'version = "1.0.0"'),
    "deploy/systemd/thaiqr-web.service": ("Thai QR Payments: web", NEW_DESCRIPTION),
    "deploy/thaiqr-admin": ("#!/bin/sh\n", f"#!/bin/sh\n{NEW_LINE}\n"),
    "deploy/nginx/thaiqr.conf": ("upstream thaiqr {\n", f"upstream thaiqr {{\n{NEW_LINE}\n"),
}
STATEMENTS = "/var/lib/thai-qr-payments/statements"
POINT = "2026-11-21 14:05:00+07"


@dataclass(frozen=True)
class Step:
    """A sample of the guide with the heading or the bold words before it."""

    title: str
    code: str

    @property
    def timed(self) -> str:
        shown = f'echo "drill: {self.title}: $(date +%s.%N) $BEGAN"'
        return f"BEGAN=$(date +%s.%N)\n{self.code.rstrip()}\n{shown}\n"


def steps(name: str, section: str) -> Iterator[Step]:
    """The commands of a section of a page, in order."""
    text = PAGES[name].file.read_text()
    (found,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    for block in BLOCK.finditer(found):
        _, language, _, code = block.groups()
        if language == COMMANDS and BUILT_ELSEWHERE not in code and NEEDS_AN_ENGINE not in code:
            before = found[: block.start()]
            titles = re.findall(r"\*\*(.+?)\*\*", before) or [section]
            indent = re.compile(rf"^{' ' * len(block[1])}", re.M)
            yield Step(titles[-1].rstrip("."), indent.sub("", code))


def without_root() -> str:
    """Why the drill cannot run here."""
    if not FOLDER:
        return "run it by `make drill-install`"
    if os.geteuid() != 0:
        return "it needs root"
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    return f"apt install {' '.join(missing)}" if missing else ""


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(without_root()), reason=without_root())]


def test_guide_leads_from_an_empty_debian_to_a_payment_a_restore_and_an_upgrade(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    root = DebianRoot(Path(FOLDER).resolve() / "root")
    shutil.rmtree(root.folder.parent, ignore_errors=True)
    root.folder.parent.mkdir(parents=True)
    root.create()
    installation.build(tmp_path)
    installation.build(tmp_path, NEW_RELEASE)
    for file in tmp_path.iterdir():
        shutil.copy(file, root.folder / "root")
    root.write("/usr/local/sbin/certbot", (DRILL / "certbot").read_text(), 0o755)
    for name in ("load.py", "functions.sh"):
        root.write(f"/root/{name}", (DRILL / name).read_text())

    packages, service, install, payment = steps("one-machine", "Install")
    change, back = steps("one-machine", "A new release")
    release = Step("The files of the new release", service.code.replace(VERSION, "1.0.0"))
    prepared = root.run(packages.timed + service.timed + release.timed)
    printed = root.boot(
        unpack(service)
        + first_payment(install, payment)
        + unpack(release)
        + upgrade(change, back)
        + restore(install),
        BOOT_SECONDS,
    )

    assert f"> {NEW_LINE}\n" in printed, "the guide shows what is new in the file of the proxy"
    times = [
        f"{float(end) - float(start):6.1f} s  {title}"
        for title, end, start in re.findall(r"^drill: (.+): ([\d.]+) ([\d.]+)$", prepared + printed, re.M)
    ]
    found = re.findall(r"^found: .*$", printed, re.M)
    request.node.add_report_section("call", "the drill", "\n".join([*times, *found]))


def unpack(files: Step) -> str:
    """The version and the folder, again for the shell of the booted machine."""
    return files.code.partition("python3 -m venv")[0]


def first_payment(install: Step, payment: Step) -> str:
    """The same payment is made again later."""
    asked = Step(install.title, install.code.rstrip() + ANSWERS)
    return f"""\
. /root/functions.sh
{statement_of_a_bank()}
{asked.timed}
TOKEN=$(token)
wait_until_ready
thaiqr-admin doctor
first_payment() {{
{payment.code}}}
{Step(payment.title, "first_payment").timed}
"""


def statement_of_a_bank() -> str:
    """A file for the nightly import, which runs at once. It has errors, so it must end in `failed`."""
    (folder,) = steps("operations", "Nightly jobs")
    return f"""\
id thaiqr > /dev/null || useradd --system --user-group --no-create-home --shell /usr/sbin/nologin thaiqr
{folder.code}
echo "no statement" > {STATEMENTS}/scb/day.csv
touch --date="1 hour ago" {STATEMENTS}/scb/day.csv
"""


def upgrade(change: Step, back: Step) -> str:
    """The new release and the way back under load: no request may fail."""
    return f"""\
wait_until_file {STATEMENTS}/scb/failed/day.csv
/opt/thai-qr-payments/current/bin/python /root/load.py "$KEY" > /root/load.log & LOAD=$!
{change.timed}
wait_until_release_runs "$VERSION"
test "$(systemctl show --property=Description --value thaiqr-web)" = "{NEW_DESCRIPTION}"
grep -q "{NEW_LINE}" /usr/local/bin/thaiqr-admin
{back.timed}
wait_until_release_runs "$VERSION"
test "$(systemctl show --property=Description --value thaiqr-web)" != "{NEW_DESCRIPTION}"
kill -TERM $LOAD && wait $LOAD
echo "found: under load during the release: $(cat /root/load.log)"
echo "found: check: $(thaiqr-admin check | tail -1)"
"""


def restore(install: Step) -> str:
    """A backup, a payment, a point in time, a payment that is lost, and the way back."""
    stop, to_the_end, to_a_point, start, *_ = steps("restore", "Restore")
    assert POINT in to_a_point.code
    before = f"""\
{Step("A full backup", "systemctl start backup-thaiqr@full").timed}
wait_until_ready
first_payment > /dev/null
KEPT=$(payments)
archive; sleep 1; POINT=$(date '+%Y-%m-%d %H:%M:%S%:z'); sleep 1
first_payment > /dev/null
archive
"""
    after = f"""\
wait_until_writable
test "$(payments)" = "$KEPT"
echo "found: after the restore: $KEPT succeeded payments, as at the point in time"
{Step("Start again", f"{start.code}wait_until_ready").timed}
service /metrics | grep "^thaiqr_safe_mode 1"
thaiqr-admin manage resume_transfers
{Step("Audit", "thaiqr-admin manage audit").timed}
thaiqr-admin manage resume_transfers --reason "The drill"
service /metrics | grep "^thaiqr_safe_mode 0"
{Step("A payment after the restore", "first_payment > /dev/null").timed}
"""
    code = Step(to_a_point.title, to_a_point.code.replace(POINT, "$POINT")).timed
    return before + stop.code + code + after + on_a_new_machine(stop, to_the_end, install)


def on_a_new_machine(stop: Step, to_the_end: Step, install: Step) -> str:
    """Debian made an empty cluster, Redis is empty. The settings and the passphrase come from the safe."""
    (prepare,) = steps("restore", "A new machine")
    assert "--before-restore" in prepare.code
    return f"""\
KEPT=$(payments)
archive
{stop.code}
systemctl disable thaiqr-web thaiqr-web.socket backup-thaiqr@full.timer backup-thaiqr@incr.timer
systemctl stop postgresql@15-main
pg_dropcluster 15 main && pg_createcluster 15 main
rm -f /etc/pgbackrest/pgbackrest.conf /etc/nginx/sites-available/thaiqr.conf /usr/local/bin/thaiqr-admin
systemctl start postgresql@15-main
redis-cli flushall
{Step("A new machine", prepare.code.rstrip() + ANSWERS).timed}
{to_the_end.timed}
wait_until_writable
test "$(payments)" = "$KEPT"
{install.code}
wait_until_ready
service /metrics | grep "^thaiqr_safe_mode 1"
thaiqr-admin manage audit
"""
