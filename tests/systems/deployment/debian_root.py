"""An empty Debian 12 in a folder. Commands run in it with the network of this machine, or after it booted."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container"}
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
RELEASE, MACHINE = "bookworm", ("systemd-sysv", "dbus", "ca-certificates")
# No registration: this machine may have no systemd of its own.
NSPAWN = ("systemd-nspawn", "--quiet", "--register=no", "--keep-unit")
# A package must not start its service while it is installed: the machine has not booted yet.
NO_SERVICES = "#!/bin/sh\nexit 101\n"
UNIT = """\
[Unit]
Description=What the test does
After=network.target postgresql.service redis-server.service nginx.service
SuccessAction=poweroff-force
FailureAction=poweroff-force

[Service]
Type=oneshot
WorkingDirectory=/root
Environment=HOME=/root LC_ALL=C.UTF-8
ExecStart=/bin/bash -eu -o pipefail /root/script.sh
StandardOutput=append:/root/script.log
StandardError=append:/root/script.log

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class DebianRoot:
    """`folder` is made by `create`. All of it needs root."""

    folder: Path

    def create(self) -> None:
        """Bootstrap it. A machine behind a proxy with TLS hands its certificate authorities on."""
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(MACHINE)}", RELEASE]
        subprocess.run([*command, self.folder, MIRROR], check=True, stdout=subprocess.DEVNULL)
        if authorities := os.environ.get("PIP_CERT"):
            shutil.copy(authorities, self.folder / "etc" / "authorities-of-the-host.pem")
            (self.folder / "etc" / "pip.conf").write_text(
                "[global]\ncert = /etc/authorities-of-the-host.pem\n"
            )
        self.write("/etc/hosts", "127.0.0.1 localhost pay.example.com\n")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        place = self.folder / path.removeprefix("/")
        place.write_text(text)
        place.chmod(mode)

    def read(self, path: str) -> str:
        return (self.folder / path.removeprefix("/")).read_text()

    def run(self, script: str) -> str:
        """Run a script with the network of this machine; return its output. Raises CalledProcessError."""
        self.write("/usr/sbin/policy-rc.d", NO_SERVICES, 0o755)
        self.write("/root/script.sh", script)
        settings = [
            f"--setenv={each}" for each in ("DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "HOME=/root")
        ]
        inside = ["/bin/bash", "-eu", "-o", "pipefail", "/root/script.sh"]
        command = [*NSPAWN, f"--directory={self.folder}", "--resolv-conf=copy-host", *settings, *inside]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        (self.folder / "usr/sbin/policy-rc.d").unlink()
        return done.stdout

    def boot(self, script: str, seconds: float) -> str:
        """Boot it as a machine without a network, and run a script there to its end; return its output."""
        self.write("/root/script.sh", f"{script}\necho finished\n")
        self.write("/root/script.log", "")
        self.write("/etc/systemd/system/script.service", UNIT)
        wanted = self.folder / "etc/systemd/system/multi-user.target.wants/script.service"
        wanted.parent.mkdir(parents=True, exist_ok=True)
        wanted.unlink(missing_ok=True)
        wanted.symlink_to("../script.service")
        command = [*NSPAWN, f"--directory={self.folder}", "--private-network", "--boot"]
        machine = self.folder.with_name("console.log")
        with machine.open("w") as console:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                timeout=seconds,
                check=False,
            )
        printed = self.read("/root/script.log")
        assert printed.endswith("finished\n"), machine.read_text()[-3000:] + printed[-6000:]
        return printed
