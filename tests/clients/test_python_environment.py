"""Whatever the machine of a shop is like, the Python client and `thaiqr` say what is wrong, in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import thaiqr
from thaiqr import AsyncThaiQR, NetworkError, ThaiQR
from thaiqr.cli import profiles

from tests import webhook_receiver
from tests.clients.running import KEY
from tests.webhook_receiver import Reply

BROKEN = [
    {"HTTPS_PROXY": "ftp://proxy.example"},
    {"HTTP_PROXY": "http://[::1"},
    {"ALL_PROXY": "socks5://127.0.0.1:1"},
    {"NO_PROXY": "[::1"},
    {"SSL_CERT_FILE": "/nowhere/ca.pem"},
]
OUTPUTS = ["ascii", "cp1252", "tis-620"]


@pytest.mark.parametrize("path", ["", "/", "/Thai/v1", "/Thai/v1/", "/v1", "/Thai", "/thai/v1//"])
@pytest.mark.slow
def test_base_url_with_or_without_the_path_of_the_api(path: str) -> None:
    with webhook_receiver.running_receiver() as service:
        service.on("/shop/v1/banks", Reply(body=b'{"banks": []}'))
        for prefix in ("", "/shop"):
            with ThaiQR(KEY, base_url=service.base_url + prefix + path) as client:
                assert client._settings.base_url == service.base_url + prefix
        with ThaiQR(KEY, base_url=f"{service.base_url}/shop{path}") as client:
            assert client.banks.list() == ()


@pytest.mark.parametrize("environment", BROKEN, ids=lambda given: next(iter(given)))
def test_broken_environment_is_a_value_error_that_names_the_variable(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, value),) = environment.items()
    monkeypatch.setenv(name, value)
    for kind in (ThaiQR, AsyncThaiQR):
        with pytest.raises(ValueError, match=name):
            kind(KEY, base_url="https://pay.example.com")


@pytest.mark.parametrize(
    "url", ["http://shop.example:99999", "http://shop.example:x", "http://\u2024", "http://"]
)
def test_url_that_no_request_can_have_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        ThaiQR(KEY, base_url=url)


def test_idempotency_key_in_thai_is_sent_as_utf_8() -> None:
    with webhook_receiver.running_receiver() as service:
        service.on("/v1/qr-codes", Reply(status=400, body=b"{}"))
        with ThaiQR(KEY, base_url=service.base_url) as client:
            with pytest.raises(thaiqr.ApiError):
                client.qr_codes.create(amount=100, idempotency_key="โต๊ะ 4")
            with pytest.raises(ValueError, match="idempotency key"):
                client.qr_codes.create(amount=100, idempotency_key="a\nb")
        (sent,) = service.requests
        assert sent.headers["idempotency-key"].encode("latin-1").decode() == "โต๊ะ 4"


@pytest.mark.slow
def test_answer_that_cannot_be_decoded_is_a_network_error() -> None:
    broken = Reply(headers={"Content-Encoding": "gzip"}, body=b"no gzip")
    with webhook_receiver.running_receiver() as service:
        service.on("/v1/banks", broken)
        with ThaiQR(KEY, base_url=service.base_url, max_retries=0) as client, pytest.raises(NetworkError):
            client.banks.list()


@pytest.mark.parametrize("wrong", [None, {"payment_id": "pay_1"}, 17])
def test_id_that_is_no_text_is_named(wrong: object) -> None:
    client = ThaiQR(KEY, base_url="http://127.0.0.1:1")
    with client, pytest.raises(ValueError, match="payment_id must be an id"):
        client.payments.get(wrong)  # type: ignore[arg-type]


# --- the command line -----------------------------------------------------------------------------------


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """`thaiqr` in a process of its own, with nothing else in its environment."""
    return subprocess.run(
        [sys.executable, "-m", "thaiqr", *arguments],
        env={"PATH": os.environ["PATH"], "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )


def assert_explained(done: "subprocess.CompletedProcess[str]", *codes: int) -> None:
    assert done.returncode in codes, done
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("environment", BROKEN, ids=lambda given: next(iter(given)))
def test_command_line_explains_a_broken_environment(environment: dict[str, str]) -> None:
    login = {"THAIQR_API_KEY": KEY, "THAIQR_BASE_URL": "https://pay.example.com"}
    done = command("balance", **login, **environment)
    assert_explained(done, 2)
    assert next(iter(environment)) in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("encoding", OUTPUTS)
def test_command_line_explains_an_unusable_home(tmp_path: Path, encoding: str) -> None:
    file, broken = tmp_path / "file", tmp_path / "broken" / "thaiqr" / "config.toml"
    file.write_text("")
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b'["\xe0\xb8\xa3\xff"]')
    broken.chmod(0o600)
    for home in (file, broken.parents[1], tmp_path / "nothing"):
        done = command("balance", HOME=str(home), XDG_CONFIG_HOME=str(home), PYTHONIOENCODING=encoding)
        assert_explained(done, 2, 3)


def test_profiles_are_in_appdata_on_windows_where_files_have_no_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    monkeypatch.setenv("APPDATA", str(tmp_path))
    monkeypatch.delenv(profiles.KEY, raising=False)
    path = profiles.store("default", profiles.Login(KEY, "https://pay.example.com"))
    assert path == tmp_path / "thaiqr" / "config.toml"
    path.chmod(0o666)  # as Python shows every file there
    assert profiles.find(None) == profiles.Login(KEY, "https://pay.example.com")
