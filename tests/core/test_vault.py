import base64

import pytest

from core import vault

OLD, NEW = vault.new_key(), vault.new_key()


@pytest.mark.parametrize("text", ["", "whsec_abc", "ความลับ", "line\nbreak", "\x00", "x" * 10_000])
def test_sealed_text_opens_with_the_same_context(text: str) -> None:
    token = vault.seal(text, context="wh_1", keys=[NEW])
    assert vault.open_sealed(token, context="wh_1", keys=[NEW]) == text


def test_sealed_token_cannot_be_opened_for_another_row() -> None:
    token = vault.seal("secret", context="wh_1", keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="wh_2", keys=[NEW])


def test_sealed_token_separates_context_from_text() -> None:
    token = vault.seal('", "b', context='a", "', keys=[NEW])
    assert vault.open_sealed(token, context='a", "', keys=[NEW]) == '", "b'
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="a", keys=[NEW])


def test_sealed_token_shows_neither_text_nor_context() -> None:
    raw = base64.urlsafe_b64decode(
        vault.seal("visible", context="wh_1", keys=[NEW]).removeprefix(vault.PREFIX)
    )
    assert b"visible" not in raw
    assert b"wh_1" not in raw


def test_sealed_bytes_open_with_their_place_and_key_only() -> None:
    token = vault.seal_bytes(b"\x00visible\xff", context="wh_1", keys=[OLD])
    assert token.startswith(vault.PREFIX_BYTES) and b"visible" not in token and b"wh_1" not in token
    assert vault.open_bytes(token, context="wh_1", keys=[NEW, OLD]) == b"\x00visible\xff"
    renewed = vault.reseal(token, keys=[NEW, OLD])
    assert vault.open_bytes(renewed, context="wh_1", keys=[NEW]) == b"\x00visible\xff"
    assert vault.is_newest(renewed, keys=[NEW]) and not vault.is_newest(token, keys=[NEW, OLD])
    for broken in (
        token[:-1],
        token[:9] + bytes([token[9] ^ 1]) + token[10:],
        token[1:],
        vault.PREFIX_BYTES,
        b"",
        b"sealed",
    ):
        with pytest.raises(vault.CannotOpen):
            vault.open_bytes(broken, context="wh_1", keys=[OLD])
    for context, key in (("wh_2", OLD), ("wh_1", NEW)):
        with pytest.raises(vault.CannotOpen):
            vault.open_bytes(token, context=context, keys=[key])


def test_long_content_is_compressed_and_its_usual_words_are_needed() -> None:
    text = "".join(f'"name {number}": "value",' for number in range(40))
    token = vault.seal(text, context="wh_1", keys=[NEW], digest_key=b"k" * 16)
    assert len(token) < len(text) / 2
    assert vault.open_with_key(token, context="wh_1", keys=[NEW]) == (b"k" * 16, text.encode())
    assert vault.open_sealed(vault.reseal(token, keys=[OLD, NEW]), context="wh_1", keys=[OLD]) == text
    with_words = vault.seal_bytes(text.encode(), context="wh_1", keys=[NEW], usual=text.encode())
    assert len(with_words) < len(text) / 5
    opened = vault.open_bytes(with_words, context="wh_1", keys=[NEW], usual=text.encode())
    assert opened == text.encode()
    with pytest.raises(vault.CannotOpen):
        vault.open_bytes(with_words, context="wh_1", keys=[NEW], usual=b"other words")


def test_sealing_the_same_text_twice_gives_different_tokens() -> None:
    assert vault.seal("a", context="b", keys=[NEW]) != vault.seal("a", context="b", keys=[NEW])


@pytest.mark.parametrize("place", [8, 20, 40, 60, -6])  # salt, nonce, text, tag
def test_altered_sealed_token_cannot_be_opened(place: int) -> None:
    token = vault.seal("secret", context="wh_1", keys=[NEW])
    altered = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(altered, context="wh_1", keys=[NEW])


def test_sealed_token_cannot_be_opened_with_another_key() -> None:
    token = vault.seal("secret", context="wh_1", keys=[OLD])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(token, context="wh_1", keys=[NEW])


def test_first_encryption_key_seals_and_every_key_opens() -> None:
    before = vault.seal("secret", context="wh_1", keys=[OLD])
    after = vault.seal("secret", context="wh_1", keys=[NEW, OLD])
    assert vault.open_sealed(before, context="wh_1", keys=[NEW, OLD]) == "secret"
    assert vault.open_sealed(after, context="wh_1", keys=[NEW]) == "secret"


def test_rotated_token_opens_without_the_old_encryption_key() -> None:
    token = vault.reseal(vault.seal("secret", context="wh_1", keys=[OLD]), keys=[NEW, OLD])
    assert vault.open_sealed(token, context="wh_1", keys=[NEW]) == "secret"


def test_token_rotation_without_a_matching_key_raises_cannot_open() -> None:
    with pytest.raises(vault.CannotOpen):
        vault.reseal(vault.seal("secret", context="wh_1", keys=[OLD]), keys=[NEW])


def test_sealing_without_an_encryption_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        vault.seal("secret", context="wh_1", keys=[])


def test_token_is_newest_only_with_the_first_encryption_key() -> None:
    token = vault.seal("secret", context="wh_1", keys=[OLD])
    assert vault.is_newest(token, keys=[OLD, NEW])
    assert not vault.is_newest(token, keys=[NEW, OLD])


@pytest.mark.parametrize(
    "broken", ["", "x", "ขยะ", "sealed:", "sealed:AAAA", "sealed:ขยะ", "sealed:" + "A" * 44]
)
def test_malformed_sealed_token_raises_cannot_open(broken: str) -> None:
    assert not vault.is_newest(broken, keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.open_sealed(broken, context="wh_1", keys=[NEW])
    with pytest.raises(vault.CannotOpen):
        vault.reseal(broken, keys=[NEW])


@pytest.mark.parametrize("text", [vault.seal("0987654321", context="pay_1", keys=[NEW]), "", "x", "ภาษา"])
def test_text_is_the_same_after_it_was_stored_as_bytes(text: str) -> None:
    assert vault.to_text(vault.to_bytes(text)) == text


def test_token_takes_a_quarter_less_as_bytes() -> None:
    token = vault.seal("0987654321", context="pay_1", keys=[NEW])
    stored = vault.to_bytes(token)
    assert len(stored) < 0.8 * len(token)
    assert vault.open_sealed(stored, context="pay_1", keys=[NEW]) == "0987654321"
