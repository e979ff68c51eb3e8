"""The people of merchants."""

from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from console.people import roles
from console.people.roles import ShopRole
from core.console import personal_data
from core.database import triggers
from core.database.columns import KeyedRow, known
from merchants.models import Merchant

SEES = ".view_"
"""In the names of permissions that change nothing."""
NEEDED_TO_LOOK = {
    personal_data.PERMISSION: personal_data.PERMISSION,
    "shop.view_month": "audit_trail.export_lists",
}
"""What staff need in the console for a permission of owners. All who look have those of other pages."""


class Person(User):
    """A user on the pages of a merchant. Only the role there gives rights: groups and staff do not count."""

    membership: "Membership"

    class Meta:
        proxy = True
        default_permissions = ()

    @cached_property
    def permissions(self) -> frozenset[str]:
        found = roles.permissions_of(ShopRole(self.membership.role))
        if not self.is_staff:
            return found
        hidden = {each for each, needed in NEEDED_TO_LOOK.items() if not super(Person, self).has_perm(needed)}
        return frozenset(each for each in found if SEES in each) - hidden

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.is_active and perm in self.permissions

    def has_module_perms(self, app_label: str) -> bool:
        return any(each.startswith(f"{app_label}.") for each in self.permissions)


class Membership(KeyedRow):
    """What a person does for a merchant, from the invitation until it ends. Another role is another row."""

    user = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="memberships")
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(_("role"), max_length=10, choices=ShopRole.choices)
    created_at = models.DateTimeField(_("since"))
    ended_at = models.DateTimeField(null=True)

    class Meta(KeyedRow.Meta):
        verbose_name, verbose_name_plural = _("person of a merchant"), _("people of merchants")
        permissions = [  # of staff
            ("invite_owner", "Can invite owners of shops"),
            ("look_at_shop", "Can look at a shop as its owner sees it"),
        ]
        triggers = [
            triggers.keep_rows("what a person did for a merchant stays on record"),
            triggers.ReadOnly("another role is another row", exclude=["ended_at"]),
            triggers.set_once("ended_at", "a membership that ended stays ended"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "merchant"], condition=Q(ended_at=None), name="membership_one_role"
            ),
            known("role", ShopRole, name="membership_role_known"),
        ]

    @property
    def is_look(self) -> bool:
        """Whether staff look at the shop as its owner sees it. Such a membership is not stored."""
        return self.user.is_staff
