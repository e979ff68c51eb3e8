"""Who of staff may see money that waits."""

from django.http import HttpRequest


def may_look(request: HttpRequest) -> bool:
    """Whoever sees receipts, or decides about them."""
    allowed = ("receipts.view_receipt", "receipts.resolve_receipt")
    return any(request.user.has_perm(permission) for permission in allowed)
