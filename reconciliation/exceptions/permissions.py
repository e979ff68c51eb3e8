"""Who of staff may see money that waits."""

from django.http import HttpRequest

VIEW_PERMISSIONS = (
    "reconciliation.view_banktransaction",
    "reconciliation.resolve_exception",
    "reconciliation.confirm_banktransaction",
)


def may_view_exceptions(request: HttpRequest) -> bool:
    """Whoever sees bank transactions, decides about them or confirms them."""
    return any(request.user.has_perm(permission) for permission in VIEW_PERMISSIONS)
