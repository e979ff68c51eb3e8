"""Which certificate authorities the connections of the service trust."""

import ssl

import certifi
from django.conf import settings


def ca_file() -> str:
    """CA_BUNDLE, or the public authorities of the package certifi."""
    return settings.CA_BUNDLE or certifi.where()


def has_certificates(path: str) -> bool:
    """Whether the file can be read and has certificates of authorities."""
    try:
        return bool(ssl.create_default_context(cafile=path).get_ca_certs())
    except OSError:  # ssl.SSLError is one
        return False
