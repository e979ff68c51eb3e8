"""The plug-in for WooCommerce without WordPress: size, syntax, texts, version, amounts and signatures."""

import gettext
import io
import json
import re
import subprocess
import tomllib
from typing import Any

import pytest

from tests.stack import ROOT
from tests.system_programs import find_program

pytestmark = pytest.mark.slow
PLUGIN = ROOT / "clients" / "woocommerce"
SOURCES = sorted(PLUGIN.rglob("*.php"))
MAIN = (PLUGIN / "thai-qr-payments.php").read_text()
LANGUAGES = PLUGIN / "languages"
TEXT = re.compile(r"""\b(?:__|esc_html__|esc_attr__)\( '((?:[^'\\]|\\.)*)', 'thai-qr-payments' \)""")
PLACE = re.compile(r"%(?:\d\$)?s")
MAX_LINES = 1_200
# Functions of one file, without WordPress.
RUN = """define('ABSPATH', 1);
function add_action() {}
function add_filter() {}
require $argv[1];
echo json_encode("""


def run(file: str, expression: str, *arguments: str) -> Any:
    """What an expression of PHP returns, with the functions of one file and `$argv` from 2 on."""
    command = [find_program("php", "php-cli"), "-r", f"{RUN}{expression});", str(PLUGIN / "includes" / file)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_plugin_stays_small() -> None:
    lines = [path.read_text().count("\n") for path in (*SOURCES, *PLUGIN.rglob("*.js"))]
    assert sum(lines) <= MAX_LINES


def test_sources_have_no_faults_of_syntax() -> None:
    php = find_program("php", "php-cli")
    for source in SOURCES:
        done = subprocess.run([php, "-l", source], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout


def test_files_cannot_be_called_by_a_browser() -> None:
    guards = ("defined( 'ABSPATH' ) || exit;", "defined( 'WP_UNINSTALL_PLUGIN' ) || exit;")
    assert not [source for source in SOURCES if not any(guard in source.read_text() for guard in guards)]


def test_each_text_is_there_in_thai() -> None:
    used = {text for source in SOURCES for text in TEXT.findall(source.read_text())}
    calls = [
        call
        for source in SOURCES
        for call in re.findall(r"\b(?:__|esc_html__|esc_attr__)\(", source.read_text())
    ]
    assert len(calls) == sum(len(TEXT.findall(source.read_text())) for source in SOURCES)
    compiled = gettext.GNUTranslations(io.BytesIO((LANGUAGES / "thai-qr-payments-th.mo").read_bytes()))
    assert not {text for text in used if compiled.gettext(text) == text}
    for text in used:
        assert sorted(PLACE.findall(compiled.gettext(text))) == sorted(PLACE.findall(text))


def test_compiled_texts_are_those_of_the_source() -> None:
    pairs = re.findall(
        r'^msgid (".+")\nmsgstr (".+")$', (LANGUAGES / "thai-qr-payments-th.po").read_text(), re.M
    )
    compiled = gettext.GNUTranslations(io.BytesIO((LANGUAGES / "thai-qr-payments-th.mo").read_bytes()))
    assert pairs
    for text, thai in pairs:
        assert compiled.gettext(json.loads(text)) == json.loads(thai)


def test_version_of_the_plugin_is_that_of_the_api() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    as_npm_writes_it = re.sub(r"\.?(dev|a|b|rc)(\d+)$", r"-\1.\2", version)
    assert f" * Version: {as_npm_writes_it}\n" in MAIN
    assert f"const VERSION = '{as_npm_writes_it}';" in MAIN


@pytest.mark.parametrize(
    ("baht", "satang"),
    [
        ("1500", 150_000),
        ("1500.5", 150_050),
        ("1500.50000000", 150_050),
        ("0.29", 29),
        ("1.10", 110),
        ("2000000.00", 200_000_000),
        ("19.99", 1_999),
        ("1.", 100),
        ("1.005", None),
        ("-1.00", None),
        ("1,500.00", None),
        ("1e3", None),
        ("", None),
        (" 1", None),
        ("1\n", None),
    ],
)
def test_baht_become_satang_without_floats(baht: str, satang: int | None) -> None:
    assert run("money.php", "ThaiQr\\satang($argv[2])", baht) == satang


def test_satang_become_baht() -> None:
    assert [run("money.php", "ThaiQr\\baht((int) $argv[2])", text) for text in ("5", "150050")] == [
        "0.05",
        "1500.50",
    ]


@pytest.mark.parametrize(
    ("secret", "signature"),
    [
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ("sixteen bytes or more", "v1,vB/RcK3DsQmBfdulwjqHua0e/e4naSfxEXJYPP7Oxtk="),
    ],
)
@pytest.mark.parametrize("others", ["", "v1,AAAA ", "v1a,other "])
def test_published_signatures_are_genuine(secret: str, signature: str, others: str) -> None:
    at_that_time = "[eval('namespace ThaiQr; function time() { return 1614265330; }'), "
    call = "ThaiQr\\is_genuine($argv[2], 'msg_p5jXN8AQM9LWM0D4loKWxJek', '1614265330', $argv[3], $argv[4])"
    body, signed = '{"test": 2432232314}', others + signature
    assert run("events.php", f"{at_that_time}{call}][1]", secret, signed, body) is True
    assert run("events.php", f"{at_that_time}{call}][1]", secret, signed, f"{body} ") is False
    assert run("events.php", f"{at_that_time}{call}][1]", "sixteen other bytes", signed, body) is False
    assert run("events.php", call, secret, signed, body) is False
