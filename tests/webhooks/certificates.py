"""A certificate authority for tests."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Issues server certificates; a client must trust `ca_file` to accept them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Test Authority")
        certificate = (
            _builder(self._name, self._name, self._key, days=1)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file = directory / "ca.pem"
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, *, days: int = 1) -> ssl.SSLContext:
        """A server's TLS settings with a certificate for one name. With negative days it has expired."""
        return _settings(self.server_file(name, days=days))

    def server_file(self, name: str, *, days: int = 1) -> Path:
        """The key and the certificate of a server in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name(name), self._name, key, days)
            .add_extension(x509.SubjectAlternativeName([_host(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _write(self._directory / f"{name}{days}.pem", key, certificate)

    def self_signed(self, name: str) -> ssl.SSLContext:
        """A server's TLS settings with a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name(name), _name(name), key, days=1)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        return _settings(_write(self._directory / f"{name}-self.pem", key, certificate))


def _write(pem: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Path:
    pem.write_bytes(_private(key) + certificate.public_bytes(serialization.Encoding.PEM))
    return pem


def _settings(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
    )
