"""`thaiqr verify` says whether evidence is true. The file here is made without the service."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from thaiqr.cli import evidence

from tests.clients.command_line import CommandLine
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC_KEY = base64.b64encode(KEY.public_key().public_bytes_raw()).decode()
COUNT = 5


@pytest.fixture
def thaiqr(tmp_path: Path) -> CommandLine:
    return CommandLine("", "http://127.0.0.1:1", tmp_path)


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def pack(**changes: Any) -> dict[str, Any]:
    """The last of five payments: its leaf is alone on two levels, so its path has one hash."""
    name = {"salt": "0" * 64, "text": "สมหญิง ใจดี"}
    hash = hashlib.sha256(f"{name['salt']}\n{name['text']}".encode()).hexdigest()
    payment = {"payment_id": "pay_1", "merchant": {"merchant_id": "mch_1"}, "client_name": {"sha256": hash}}
    text = json.dumps({"payment": payment}, ensure_ascii=False)
    a, b, c, d, last = (hashlib.sha256(b"\0" + each.encode()).digest() for each in [*"abcd", text])
    others = node(node(a, b), node(c, d))
    root = node(others, last).hex()
    content = {"kind": "evidence", "version": 1, "merchant_id": "mch_1", "payments": COUNT, "root": root}
    body = json.dumps(content | {"day": "2026-11-29", "closed_at": "2026-11-29T17:10:00Z"} | changes)
    seal = {"body": body, "signature": base64.b64encode(KEY.sign(body.encode())).decode()}
    return {
        "version": 1,
        "seals": [seal | {"public_key": PUBLIC_KEY}],
        "payments": [{"text": text, "seal": 0, "number": 4, "path": [others.hex()], "opened": {hash: name}}],
    }


def stored(folder: Path, content: Any) -> str:
    file = folder / "evidence.json"
    file.write_text(json.dumps(content))
    return str(file)


def test_true_evidence_names_the_key_that_has_to_be_trusted(thaiqr: CommandLine, tmp_path: Path) -> None:
    file, name = stored(tmp_path, pack()), evidence.fingerprint(PUBLIC_KEY)
    shown = thaiqr.ok("verify", file).stdout
    assert shown.startswith("true: ")
    assert "pay_1 at the close of 2026-11-29" in shown
    assert "You have to trust" in shown and name in shown
    for key in (PUBLIC_KEY, name):
        assert "You gave" in thaiqr.ok("verify", file, "--key", key, "--payment", "pay_1").stdout
    found = thaiqr.ok("verify", file, "--json").json
    payments = [{"payment_id": "pay_1", "day": "2026-11-29"}]
    assert found == {"true": True, "trusts": [name], "payments": payments}


FALSE = {
    "another root": pack(root="0" * 64),
    "another merchant": pack(merchant_id="mch_2"),
    "another kind": pack(kind="close"),
    "fewer payments": pack(payments=4),
    "no number": pack(payments="5"),
    "an object": {},
}


@pytest.mark.parametrize("name", FALSE)
def test_false_evidence_ends_with_5(thaiqr: CommandLine, tmp_path: Path, name: str) -> None:
    ended = thaiqr("verify", stored(tmp_path, FALSE[name]))
    assert (ended.code, ended.stdout[:7]) == (5, "false: ")
    ended = thaiqr("verify", stored(tmp_path, FALSE[name]), "--json")
    assert (ended.code, ended.json["true"]) == (5, False)


@pytest.mark.parametrize("options", [("--key", "SHA256:x"), ("--payment", "pay_2")])
def test_another_key_or_payment_ends_with_5(
    thaiqr: CommandLine, tmp_path: Path, options: tuple[str, str]
) -> None:
    assert thaiqr("verify", stored(tmp_path, pack()), *options).code == 5


def test_file_that_is_not_there_is_wrong_usage(thaiqr: CommandLine, tmp_path: Path) -> None:
    assert thaiqr("verify", str(tmp_path / "none.json")).code == 2


def test_evidence_that_get_prints_is_true(tmp_path: Path) -> None:
    with Receiver.running() as service:
        service.default = Reply(
            headers={"Content-Type": "application/json"}, body=json.dumps(pack()).encode()
        )
        thaiqr = CommandLine("tq_test_abcdefgh_secret", service.base_url, tmp_path)
        printed = thaiqr.ok("get", "/v1/payments/pay_1/evidence").stdout
    assert evidence.verify(printed).payments[0].payment_id == "pay_1"
