"""`thaiqr-server install`: one machine with Debian 12, up to the link of the first member of staff.

It runs as root in the folder of a release, with the programs of docs/one-machine.md. Each step keeps what is
there: settings, database, certificate, proxy, backups. So it goes on after a failure, and installs a release.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

PROGRAMS = ("certbot", "nginx", "pgbackrest", "psql", "redis-server", "systemctl")
EMAIL = r"[^@\s'\"]+@[\w-]+(\.[\w-]+)+"
QUESTIONS = {
    "domain": ("the name of the service in DNS, such as pay.example.com", r"[a-z0-9-]+(\.[a-z0-9-]+)+"),
    "email": ("your email address, for the certificate", EMAIL),
    "staff_networks": ("the networks of your staff, separated by spaces: nobody else reaches /admin", ""),
    "staff_name": ("the user name of the first member of staff", r"\w[\w.@+-]{0,149}"),
    "staff_email": ("the email address of the first member of staff", EMAIL),
    "backups": ("the folder for backups, mounted from another machine", r"(/[\w.-]+)+"),
}
SERVICES = (
    "thaiqr-web thaiqr-worker@webhooks thaiqr-worker@banks thaiqr-worker@default thaiqr-beat thaiqr-sandbox"
)
TIMERS = "backup-thaiqr@full.timer backup-thaiqr@incr.timer"
AS_POSTGRES = "runuser -u postgres --"
SAFE = "settings.env and migration.env of /etc/thai-qr-payments, /etc/pgbackrest/conf.d/passphrase.conf"


def new_secrets() -> dict[str, str]:
    """Settings that each deployment has for itself."""
    from core import vault  # its packages would slow down the start of each process

    texts = ("SECRET_KEY", "IDEMPOTENCY_KEYS", "MONITORING_TOKEN")
    keys = ("FIELD_ENCRYPTION_KEYS", "CLOSE_SIGNING_KEY")
    return {name: secrets.token_urlsafe(50) for name in texts} | {name: vault.new_key() for name in keys}


def is_valid(name: str, answer: str) -> bool:
    if name != "staff_networks":
        return bool(re.fullmatch(QUESTIONS[name][1], answer))
    try:
        return bool([ip_network(each) for each in answer.split()])
    except ValueError:
        return False


@dataclass(frozen=True)
class Installer:
    """answers: by the names of the questions. settings: more than the usual. etc: where the files go."""

    answers: dict[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    etc: Path = Path("/etc")

    def run(self, *, before_restore: bool) -> None:
        """before_restore: up to the database, which comes from a backup, with the settings of the safe."""
        has_settings = (self.etc / "thai-qr-payments/settings.env").exists()
        if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
            sys.exit(f"Install the packages of docs/one-machine.md first. Missing: {', '.join(missing)}.")
        if not Path("deploy/systemd").is_dir():
            sys.exit("Run it in the folder of the release, which has the folder deploy.")
        if before_restore and not has_settings:
            sys.exit(f"Copy these files from the safe first: {SAFE}.")
        for name in () if has_settings else QUESTIONS:
            self.answer(name)
        self._files_of_the_release()
        if not has_settings:
            self._settings()
        self._backups()
        self._proxy()
        if before_restore:
            _say("Restore the backup now (docs/restore.md), then run this command again.")
            return
        self._database()
        self._processes()
        self._first_member_of_staff()
        _run("thaiqr-admin check", is_checked=False)
        _say(f"Keep copies of these files in a safe: {SAFE}.")

    def answer(self, name: str) -> str:
        """The answer of the command line, or of the person who runs it."""
        given = self.answers.get(name) or ""
        while not is_valid(name, given):
            if name in self.answers or not sys.stdin.isatty():
                wrong = "is not valid" if name in self.answers else "is missing"
                sys.exit(f"--{name.replace('_', '-')} {wrong}: {QUESTIONS[name][0]}.")
            given = input(f"{QUESTIONS[name][0].capitalize()}: ").strip()
        self.answers[name] = given
        return given

    def _files_of_the_release(self) -> None:
        _say("The user, the programs and the units")
        if not _succeeds("id thaiqr"):
            _run("useradd --system --user-group --no-create-home --shell /usr/sbin/nologin thaiqr")
        current = "/opt/thai-qr-payments/current"
        _run("ln -sfn", sys.prefix, current)
        _run(f"ln -sfn {current}/bin/thaiqr-server /usr/local/bin/thaiqr-server")
        _run("install -m 755 deploy/thaiqr-admin /usr/local/bin/")
        _run(f"cp -r deploy/systemd/. {self.etc}/systemd/system/")
        backups = map(str, Path("deploy/pgbackrest").glob("backup-thaiqr@*"))
        _run("cp", *backups, f"{self.etc}/systemd/system/")
        _run("systemctl daemon-reload")

    def _settings(self) -> None:
        _say("The settings, with new secrets")
        login, domain = "postgresql://{}:{}@127.0.0.1:5432/thaiqr", self.answer("domain")
        owner = f"MIGRATION_DATABASE_URL={login.format('thaiqr_owner', secrets.token_hex(24))}\n"
        self._write("thai-qr-payments/migration.env", owner, "-m 600")
        values = {
            "DATABASE_URL": login.format("thaiqr", secrets.token_hex(24)),
            "REDIS_URL": "redis://127.0.0.1:6379/0",
            "BASE_URL": f"https://{domain}",
            "ALLOWED_HOSTS": domain,
            "PROXY_HOPS": "1",
            "STATEMENTS_DIR": "/var/lib/thai-qr-payments/statements",
            "SANDBOX_BANK_SECRET": secrets.token_hex(24),
            "SANDBOX_ACQUIRER_URL": "http://127.0.0.1:8100",
            **new_secrets(),
            **self.settings,
        }
        lines = "".join(f"{name}={value}\n" for name, value in values.items())
        self._write("thai-qr-payments/settings.env", lines, "-m 640 -g thaiqr")

    def _backups(self) -> None:
        """The repository of pgBackRest, and the settings with which PostgreSQL archives."""
        if (self.etc / "pgbackrest/pgbackrest.conf").exists():
            return
        _say("Backups")
        place, passphrase = self.answer("backups"), self.etc / "pgbackrest/conf.d/passphrase.conf"
        _run(f"install -d -o postgres -m 700 {self.etc}/pgbackrest {passphrase.parent} /var/spool/pgbackrest")
        _run(f"install -d -o postgres -m 700 {place}")
        if not passphrase.exists():
            text = f"[global]\nrepo1-cipher-pass={secrets.token_urlsafe(48)}\n"
            self._write("pgbackrest/conf.d/passphrase.conf", text, "-m 600")
        _run(f"chown postgres {passphrase}")
        archive = f"{self.etc}/postgresql/15/main/conf.d/thaiqr-backup.conf"
        _run(f"cp deploy/pgbackrest/postgresql.conf {archive}")
        sample = Path("deploy/pgbackrest/pgbackrest.conf").read_text()
        changed = re.sub(r"^repo1-path=.*$", f"repo1-path={place}", sample, flags=re.M)
        self._write("pgbackrest/pgbackrest.conf", changed, "-o postgres -m 640")

    def _proxy(self) -> None:
        """The file of an earlier installation stays; what the release changes in it is shown."""
        sample, site = Path("deploy/nginx/thaiqr.conf"), self.etc / "nginx/sites-available/thaiqr.conf"
        if site.exists():
            _run(f"diff {site} {sample}", is_checked=False)
            return
        _say("The certificate and the proxy")
        domain, networks = self.answer("domain"), self.answer("staff_networks").split()
        if not (self.etc / f"letsencrypt/live/{domain}").exists():
            email = self.answer("email")
            options = f"--webroot --webroot-path /var/www/html --domain {domain} --email {email}"
            hook = ("--deploy-hook", "systemctl reload nginx")
            _run(f"certbot certonly --agree-tos --non-interactive {options}", *hook)
        allowed = "\n        ".join(f"allow {network};" for network in networks)
        changed = sample.read_text().replace("pay.example.com", domain)
        changed = changed.replace("allow 192.0.2.0/24;", allowed).replace("        allow 192.0.2.10;\n", "")
        self._write("nginx/sites-available/thaiqr.conf", changed, "-m 644")
        _run(f"ln -sfn ../sites-available/thaiqr.conf {self.etc}/nginx/sites-enabled/thaiqr.conf")
        _run(f"rm -f {self.etc}/nginx/sites-enabled/default")
        for command in ("nginx -t", "systemctl reload nginx"):
            _run(command)

    def _database(self) -> None:
        if not _psql("SELECT 1 FROM pg_database WHERE datname = 'thaiqr'"):
            _say("The database and its roles")
            owner = self._password("migration.env", "MIGRATION_DATABASE_URL")
            logins = {"POSTGRES_USER": "postgres", "THAIQR_OWNER_PASSWORD": owner}
            logins["THAIQR_DATABASE_PASSWORD"] = self._password("settings.env", "DATABASE_URL")
            roles = Path("deploy/compose/create-roles.sh").read_text()
            _run(f"{AS_POSTGRES} sh -s", given=roles, environ=logins)
            _psql("ALTER SYSTEM SET max_connections = 200")
            _run("systemctl restart postgresql@15-main")
        if not _succeeds(f"systemctl is-enabled {TIMERS}"):
            for command in ("stanza-create", "check"):
                _run(f"{AS_POSTGRES} pgbackrest --stanza=thaiqr {command}")
            _run(f"systemctl enable --now {TIMERS}")
        _say("The tables")
        _run("systemctl start thaiqr-migrate")

    def _password(self, file: str, name: str) -> str:
        text = (self.etc / "thai-qr-payments" / file).read_text()
        (url,) = re.findall(rf"^{name}=(.+)$", text, re.M)
        return urlsplit(url).password or ""

    def _processes(self) -> None:
        """A restart changes to this release. The socket stays, so no request fails."""
        _say("The processes")
        if _succeeds("systemctl is-enabled thaiqr-web"):
            _run("systemctl restart thaiqr-web thaiqr-worker@* thaiqr-beat thaiqr-sandbox*")
        else:
            _run(f"systemctl enable --now thaiqr-web.socket {SERVICES}")

    def _first_member_of_staff(self) -> None:
        if not _psql("SELECT 1 FROM auth_user WHERE is_superuser LIMIT 1", "thaiqr"):
            _say("The first member of staff chooses a password with this link:")
            who = map(self.answer, ("staff_name", "staff_email"))
            _run("thaiqr-admin manage invite_superuser", *who)

    def _write(self, name: str, content: str, rights: str) -> None:
        """The file has its rights before it has its content, and its name when it is complete."""
        path = self.etc / name
        part = path.with_name(f"{path.name}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        _run(f"install {rights} /dev/null {part}")
        part.write_text(content)
        part.rename(path)


def _say(text: str) -> None:
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


def _run(
    command: str,
    *more: str,
    given: str | None = None,
    environ: Mapping[str, str] = {},
    is_checked: bool = True,
) -> None:
    """Run a program with the words of the command and what follows. Exits with a message if it fails."""
    words = [*command.split(), *more]
    done = subprocess.run(words, input=given, env={**os.environ, **environ}, text=True, check=False)  # noqa: S603
    if is_checked and done.returncode:
        sys.exit(f"This command failed. Repair the cause, and run install again: {' '.join(words)}")


def _psql(statement: str, database: str = "postgres") -> str:
    words = [*AS_POSTGRES.split(), "psql", "-v", "ON_ERROR_STOP=1", "-Atc", statement, database]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    return (
        done.stdout.strip() if done.returncode == 0 else sys.exit("Repair PostgreSQL, and run install again.")
    )


def _succeeds(command: str) -> bool:
    return subprocess.run(command.split(), capture_output=True, check=False).returncode == 0  # noqa: S603
