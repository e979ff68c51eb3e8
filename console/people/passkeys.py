"""Passkeys of staff (WebAuthn, level 3): another second step for people who have an authenticator app.

A challenge belongs to one session and is used once. A passkey signs the address of the page, so it works on
no false page.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import webauthn
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from console.models import Passkey
from console.people.second_factors import WrongCode

# In a session: the challenge of the page that was shown last. A question on the way to a new passkey asks for
# an old one, so both have their own.
CREATION_CHALLENGE, REQUEST_CHALLENGE = "passkey_creation_challenge", "passkey_request_challenge"
MAX_ANSWER = 20_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passkey works: the host of the console, and its address."""

    host: str
    origin: str


def place_of(request: HttpRequest) -> Place:
    """ALLOWED_HOSTS has the hosts of this deployment. TLS may end at a proxy."""
    scheme = "https" if settings.SESSION_COOKIE_SECURE else "http"
    return Place(request.get_host().partition(":")[0], f"{scheme}://{request.get_host()}")


def of(user: Any) -> list[Passkey]:
    return list(Passkey.objects.filter(user=user).order_by("created_at"))


def creation_options(request: HttpRequest, user: User) -> str:
    """What the browser needs to make a passkey, as JSON. The challenge is kept in the session."""
    options = webauthn.generate_registration_options(
        rp_id=place_of(request).host,
        rp_name="Thai QR Payments",
        user_id=str(user.pk).encode(),
        user_name=user.get_username(),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.DISCOURAGED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
        exclude_credentials=_descriptors(user),
    )
    request.session[CREATION_CHALLENGE] = bytes_to_base64url(options.challenge)
    return options_to_json(options)


def request_options(request: HttpRequest, user: Any) -> str:
    """What the browser needs to use a passkey, as JSON; empty if this person has none."""
    descriptors = _descriptors(user)
    if not descriptors:
        return ""
    options = webauthn.generate_authentication_options(
        rp_id=place_of(request).host,
        allow_credentials=descriptors,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    request.session[REQUEST_CHALLENGE] = bytes_to_base64url(options.challenge)
    return options_to_json(options)


def add(request: HttpRequest, user: User, name: str, answer: str, *, now: datetime) -> Passkey:
    """Store a new passkey. Raises WrongCode if the answer of the browser is not right."""
    place = place_of(request)
    try:
        made = webauthn.verify_registration_response(
            credential=answer[:MAX_ANSWER],
            expected_challenge=_take_challenge(request, CREATION_CHALLENGE),
            expected_rp_id=place.host,
            expected_origin=place.origin,
        )
        with transaction.atomic():
            passkey: Passkey = Passkey.objects.create(
                user=user,
                name=name,
                credential_id=bytes_to_base64url(made.credential_id),
                public_key=bytes_to_base64url(made.credential_public_key),
                sign_count=made.sign_count,
                created_at=now,
            )
    except (WebAuthnException, IntegrityError, ValueError) as error:
        raise WrongCode from error
    return passkey


def accept(request: HttpRequest, user: Any, answer: str, *, now: datetime) -> bool:
    """Whether the answer is a signature of a passkey of this person for this session."""
    place = place_of(request)
    try:
        challenge = _take_challenge(request, REQUEST_CHALLENGE)
        given = webauthn.helpers.parse_authentication_credential_json(answer[:MAX_ANSWER])
        passkey = next((each for each in of(user) if each.credential_id == given.id), None)
        if passkey is None:
            return False
        seen = webauthn.verify_authentication_response(
            credential=given,
            expected_challenge=challenge,
            expected_rp_id=place.host,
            expected_origin=place.origin,
            credential_public_key=base64url_to_bytes(passkey.public_key),
            credential_current_sign_count=passkey.sign_count,
        )
    except (WebAuthnException, ValueError):
        return False
    known = Passkey.objects.filter(pk=passkey.pk, sign_count__lte=seen.new_sign_count)
    return bool(known.update(sign_count=seen.new_sign_count, last_used_at=now))


def remove(user: User, passkey_id: str) -> bool:
    found = Passkey.objects.filter(user=user, pk=passkey_id) if passkey_id.isdecimal() else None
    return bool(found is not None and found.delete()[0])


def _descriptors(user: Any) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(base64url_to_bytes(each.credential_id)) for each in of(user)]


def _take_challenge(request: HttpRequest, name: str) -> bytes:
    """Raises ValueError without a challenge. Each is used once."""
    challenge = request.session.pop(name, None)
    if challenge is None:
        raise ValueError("This session has no challenge.")
    return base64url_to_bytes(challenge)
