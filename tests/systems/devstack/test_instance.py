"""An instance's data folder, secrets, ports and output."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from config.devstack import StartError, ports
from config.devstack.environment import (
    LOOPBACK_WEBHOOK_SETTINGS,
    environment,
    load_env_file,
    write_env_file,
)
from config.devstack.instance import Instance, wipe
from tests.stack import ROOT

LINES = 20_000


def test_instance_secret_is_generated_once_and_kept(folder: Path) -> None:
    with Instance(folder) as instance:
        first = instance.secret("SECRET_KEY", lambda: "made first")
    with Instance(folder) as again:
        assert again.secret("SECRET_KEY", lambda: "made again") == first


def test_new_instance_has_a_separate_idempotency_key_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_KEY", "IDEMPOTENCY_KEYS"):
        monkeypatch.delenv(name, raising=False)
    with Instance(folder) as instance:
        made = environment(instance, {"DATABASE_URL": "postgres://x"}, "redis://x")
        assert made["SECRET_KEY"] not in made["IDEMPOTENCY_KEYS"]
        assert len(made["IDEMPOTENCY_KEYS"].split(",")) == 1
        assert environment(instance, {"DATABASE_URL": "postgres://x"}, "redis://x") == made


def test_webhooks_may_go_to_this_machine_unless_the_environment_says_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOOPBACK_WEBHOOK_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    with Instance(folder) as instance:
        made = environment(instance, {}, "redis://x")
        assert made.items() >= LOOPBACK_WEBHOOK_SETTINGS.items()
        monkeypatch.setenv("WEBHOOK_ALLOWED_NETWORKS", "")
        monkeypatch.setenv("WEBHOOK_ALLOW_HTTP", "0")
        made = environment(instance, {}, "redis://x")
        assert (made["WEBHOOK_ALLOWED_NETWORKS"], made["WEBHOOK_ALLOW_HTTP"]) == ("", "0")


def test_instance_port_is_kept_while_free(folder: Path) -> None:
    with Instance(folder) as instance:
        first = instance.port("postgres")
        assert instance.port("postgres") == first
        with socket.create_server((ports.LOOPBACK, first)):
            assert instance.port("postgres") != first


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PORT", "SEPARATE_WORKERS"])
def test_wrong_setting_of_make_run_is_named(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "config.devstack"],
        cwd=ROOT,
        env=os.environ | {name: "yes", "DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{name}=yes is ")
    assert done.stderr.count("\n") == 1


def test_data_folder_is_locked_by_one_process(folder: Path) -> None:
    with Instance(folder), pytest.raises(StartError, match="DATA_DIR"):
        wipe(folder)
    wipe(folder)
    assert not folder.exists()


def test_environment_variable_overrides_the_env_file_of_the_instance(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    write_env_file(folder, {"QR_GIVEN": "by the instance", "QR_MISSING": "a=b"})
    monkeypatch.setattr(os, "environ", {"DATA_DIR": str(folder), "QR_GIVEN": "by hand"})
    load_env_file()
    assert (os.environ["QR_GIVEN"], os.environ["QR_MISSING"]) == ("by hand", "a=b")


@pytest.mark.slow
def test_blocked_output_does_not_block_the_instance() -> None:
    program = (
        "from config.devstack.supervisor import print_line\n"
        f"for _ in range({LINES}): print_line('web', 'x' * 100)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as unread:
        assert unread.wait(60) == 0


def test_foreign_folder_is_not_used_as_data_dir(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(StartError, match="DATA_DIR"):
        Instance(tmp_path)
    with pytest.raises(StartError, match="DATA_DIR"):
        wipe(tmp_path)
    assert (tmp_path / "precious").read_text() == "x"
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_own_data_folder_is_reused_and_wiped(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Instance(folder) as instance:
        instance.remember("port", 1)
    with Instance(folder) as again:
        assert again.state == {"port": 1}
    wipe(folder)
    assert not folder.exists()


def test_make_key_shows_what_make_run_printed(folder: Path) -> None:
    shown = {"secret_key": "tq_test_1", "admin_user": "admin", "owner_user": "owner"}
    shown["admin_password"] = "secret-1"
    assert "make run" in key_of(folder).stderr
    with Instance(folder) as instance:
        instance.remember("demo", {**shown, "database": "x"})
    write_env_file(folder, {"BASE_URL": "http://127.0.0.1:8123"})
    printed = key_of(folder).stdout
    assert all(text in printed for text in (*shown.values(), "http://127.0.0.1:8123/guide"))


def key_of(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "config.devstack", "key"]
    environ = {**os.environ, "DATA_DIR": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
