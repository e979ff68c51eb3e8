"""The sample configurations of nginx and Caddy, run in front of an installation."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from config.devstack import ports
from tests.stack import ROOT, STOP_SECONDS, wait_until
from tests.system_programs import find_program

SITE = "localhost"
# The only address that may read the metrics.
PROMETHEUS = "127.0.0.2"
# As a comment, for those who have one.
OTHER_PROXY = "# set_real_ip_from 192.0.2.20;\n# real_ip_header"
NGINX_FRAME = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/thaiqr.conf;
}}
"""


class FromPrometheus(HTTPAdapter):
    """Sends requests from the address of Prometheus."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, source_address=(PROMETHEUS, 0))


def certificate(folder: Path) -> None:
    """Write `fullchain.pem` and `privkey.pem` of localhost."""
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*make, "-days", "2", *names, *files], check=True, capture_output=True)


@contextmanager
def nginx(folder: Path, web_port: int, *, behind: str = "") -> Iterator[str]:
    """nginx with the sample file, whose addresses and certificate are replaced. Yields its https URL.

    `behind` is the address of another proxy.
    """
    found, http, https = find_program("nginx", "nginx"), ports.pick(), ports.pick()
    certificate(folder)
    text = (ROOT / "deploy" / "nginx" / "thaiqr.conf").read_text()
    for sample, ours in {
        "listen [::]:80;": "",
        "listen [::]:443 ssl http2;": "",
        "listen 80;": f"listen 127.0.0.1:{http};",
        "listen 443 ssl": f"listen 127.0.0.1:{https} ssl",
        "127.0.0.1:8000": f"127.0.0.1:{web_port}",
        "/etc/letsencrypt/live/pay.example.com": str(folder),
        "pay.example.com": SITE,
        "allow 127.0.0.1;": "",
        "allow 192.0.2.10;": f"allow {PROMETHEUS};",
        **({OTHER_PROXY: f"set_real_ip_from {behind};\nreal_ip_header"} if behind else {}),
    }.items():
        assert sample in text, sample
        text = text.replace(sample, ours)
    (folder / "thaiqr.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX_FRAME.format(folder=folder))
    with _running([found, "-c", f"{folder}/nginx.conf"], folder, https) as url:
        yield url


@contextmanager
def caddy(folder: Path, web_port: int) -> Iterator[str]:
    """Caddy with the sample file and a certificate of ours. Yields its https URL."""
    found, http, https = find_program("caddy", "caddy"), ports.pick(), ports.pick()
    certificate(folder)
    text = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text()
    files = f"{folder}/fullchain.pem {folder}/privkey.pem"
    options = f"{{\n\tadmin off\n\thttp_port {http}\n\thttps_port {https}\n\tskip_install_trust\n}}\n"
    site = "{$SITE:pay.example.com} {"
    assert site in text
    (folder / "Caddyfile").write_text(
        options + text.replace(site, f"{site}\n\tbind 127.0.0.1\n\ttls {files}")
    )
    environ = {
        "HOME": str(folder), "SITE": SITE, "WEB": f"127.0.0.1:{web_port}", "STAFF_NETWORKS": "192.0.2.0/24",
        "PROMETHEUS_NETWORKS": f"{PROMETHEUS}/32",
    }  # fmt: skip
    command = [found, "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]
    with _running(command, folder, https, **environ) as url:
        yield url


@contextmanager
def _running(command: list[str], folder: Path, port: int, **environ: str) -> Iterator[str]:
    url = f"https://{SITE}:{port}"
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: _answers(url, folder) or process.poll() is not None, 120)
        assert process.poll() is None, (folder / "proxy.log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _answers(url: str, folder: Path) -> bool:
    try:
        return (
            requests.get(f"{url}/metrics", verify=str(folder / "fullchain.pem"), timeout=10).status_code
            == 403
        )
    except requests.RequestException:
        return False
