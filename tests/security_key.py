"""A security key as WebAuthn (level 3, section 6) describes it, without the library that the console uses."""

import base64
import hashlib
import json
import os
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

ORIGIN = "https://testserver"
USER_PRESENT, NEW_CREDENTIAL = 0x01, 0x40


@dataclass
class SecurityKey:
    """`sign_count` stays 0 on devices that do not count."""

    host: str = "testserver"
    origin: str = ORIGIN
    counts: bool = True
    sign_count: int = 0
    id: bytes = field(default_factory=lambda: os.urandom(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, options: dict[str, Any]) -> str:
        """The answer of the browser to `navigator.credentials.create`."""
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        credential = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(cose)
        data = self._data(USER_PRESENT | NEW_CREDENTIAL) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options)
        return self._answer({"clientDataJSON": text(client), "attestationObject": text(attestation)})

    def get(self, options: dict[str, Any]) -> str:
        """The answer of the browser to `navigator.credentials.get`."""
        self.sign_count += self.counts
        data, client = self._data(USER_PRESENT), self._client("webauthn.get", options)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": text(client),
                "authenticatorData": text(data),
                "signature": text(signature),
                "userHandle": None,
            }
        )

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + struct.pack(">BI", flags, self.sign_count)

    def _client(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _answer(self, response: dict[str, Any]) -> str:
        return json.dumps(
            {
                "id": text(self.id),
                "rawId": text(self.id),
                "type": "public-key",
                "response": response,
                "clientExtensionResults": {},
            }
        )


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def options_on(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="passkey-data" type="application/json">(.*?)</script>', page)
    assert found
    [options] = json.loads(found[1]).values()
    asked: dict[str, Any] = options["publicKey"]
    return asked
