"""Who of staff may see money that waits."""

from django.http import HttpRequest

MAY_LOOK = ("receipts.view_receipt", "receipts.resolve_receipt", "receipts.confirm_receipt")


def may_look(request: HttpRequest) -> bool:
    """Whoever sees receipts, decides about them or confirms them."""
    return any(request.user.has_perm(permission) for permission in MAY_LOOK)
