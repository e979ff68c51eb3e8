import base64

import pytest
from cryptography.fernet import Fernet

from core import vault

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.mark.parametrize("text", ["", "whsec_abc", "ความลับ", "line\nbreak", "\x00", "x" * 10_000])
def test_sealed_text_opens_with_its_context(text: str) -> None:
    token = vault.seal(text, context="wh_1", keys=[NEW])
    assert vault.open_sealed(token, context="wh_1", keys=[NEW]) == text


def test_token_cannot_be_opened_for_another_row() -> None:
    token = vault.seal("secret", context="wh_1", keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="wh_2", keys=[NEW])


def test_token_separates_context_from_text() -> None:
    token = vault.seal('", "b', context='a", "', keys=[NEW])
    assert vault.open_sealed(token, context='a", "', keys=[NEW]) == '", "b'
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="a", keys=[NEW])


def test_a_token_shows_neither_text_nor_context() -> None:
    raw = base64.urlsafe_b64decode(vault.seal("visible", context="wh_1", keys=[NEW]))
    assert b"visible" not in raw
    assert b"wh_1" not in raw


def test_the_same_text_seals_differently_each_time() -> None:
    assert vault.seal("a", context="b", keys=[NEW]) != vault.seal("a", context="b", keys=[NEW])


def test_an_altered_token_does_not_open() -> None:
    token = vault.seal("secret", context="wh_1", keys=[NEW])
    altered = token[:20] + ("A" if token[20] != "A" else "B") + token[21:]
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(altered, context="wh_1", keys=[NEW])


def test_token_cannot_be_opened_with_another_key() -> None:
    token = vault.seal("secret", context="wh_1", keys=[OLD])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="wh_1", keys=[NEW])


def test_the_first_key_seals_and_every_key_opens() -> None:
    before = vault.seal("secret", context="wh_1", keys=[OLD])
    after = vault.seal("secret", context="wh_1", keys=[NEW, OLD])
    assert vault.open_sealed(before, context="wh_1", keys=[NEW, OLD]) == "secret"
    assert vault.open_sealed(after, context="wh_1", keys=[NEW]) == "secret"


def test_rotation_makes_the_old_key_unnecessary() -> None:
    token = vault.reseal(vault.seal("secret", context="wh_1", keys=[OLD]), keys=[NEW, OLD])
    assert vault.open_sealed(token, context="wh_1", keys=[NEW]) == "secret"


def test_rotation_without_key_raises() -> None:
    with pytest.raises(vault.CannotOpen):
        vault.reseal(vault.seal("secret", context="wh_1", keys=[OLD]), keys=[NEW])


def test_no_key_at_all_refuses_to_seal() -> None:
    with pytest.raises(ValueError, match="at least one"):
        vault.seal("secret", context="wh_1", keys=[])


def test_only_the_first_key_counts_as_the_newest() -> None:
    token = vault.seal("secret", context="wh_1", keys=[OLD])
    assert vault.is_newest(token, keys=[OLD, NEW])
    assert not vault.is_newest(token, keys=[NEW, OLD])


@pytest.mark.parametrize("broken", ["", "x", "ขยะ", "gAAAAA"])
def test_malformed_token_raises_cannot_open(broken: str) -> None:
    assert not vault.is_newest(broken, keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(broken, context="wh_1", keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.reseal(broken, keys=[NEW])
