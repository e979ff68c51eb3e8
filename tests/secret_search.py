"""Search for secrets in plain text, base64 and hexadecimal."""

import base64
from collections.abc import Iterator, Mapping


def leaks(secrets: Mapping[str, bytes], data: bytes) -> list[str]:
    """The names of the secrets that `data` contains in any encoding."""
    return [name for name, secret in secrets.items() if any(form in data for form in encodings(secret))]


def encodings(secret: bytes) -> Iterator[bytes]:
    for form in (secret, *base64_encodings(secret)):
        yield form
        yield form.hex().encode()


def base64_encodings(secret: bytes) -> Iterator[bytes]:
    """The part of the base64 of a text that depends only on the secret in it, for each of three offsets."""
    for offset in range(3):
        coded = base64.b64encode(bytes(offset) + secret)
        whole = coded[-(-offset * 4 // 3) : (offset + len(secret)) * 8 // 6]
        yield whole
        yield whole.translate(bytes.maketrans(b"+/", b"-_"))
