"""What the console has of shops: staff invite the owner of one, and look at it."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ActLink, ObjectAct, ReasonForm, ShownOnce
from audit_trail.acts import Act
from console.merchants.merchant_page import MerchantPageAdmin
from console.people.roles import ShopRole
from console.people.staff_admin import StaffAdmin
from merchants.models import Merchant
from shop import people
from shop.looks import LOOK
from shop.models import Membership

STAFF_FIELDS = ("is_staff", "is_superuser", "groups", "user_permissions")


class OwnerForm(ReasonForm):
    username = forms.CharField(max_length=150, label=gettext_lazy("User name"))
    email = forms.EmailField(label=gettext_lazy("Email address"))
    has_login = people.PersonForm.base_fields["has_login"]


def _invite(merchant: Merchant, values: dict[str, Any], now: datetime) -> ShownOnce:
    form = people.PersonForm({**values, "role": ShopRole.OWNER})
    if not form.is_valid():
        raise ValidationError(form.errors.as_data())
    person, link = people.invite(merchant, form, by=None)
    text = _("%(person)s is an owner of %(name)s now. Without a link, the password of the login stays.")
    return ShownOnce(merchant, text % {"person": person, "name": merchant.name}, link)


INVITE_OWNER = ObjectAct(
    "invite-owner", gettext_lazy("Invite an owner"), Act.INVITED, "shop.invite_owner",
    gettext_lazy(
        "You get a link for the owner of %(name)s, who chooses a password with it. An owner sees the "
        "money of the shop, refunds, withdraws to listed accounts, makes keys, and invites people."
    ),
    _invite,
    words={"name": "name"}, form=OwnerForm, is_recorded_by_service=True,
)  # fmt: skip


class MerchantWithPeopleAdmin(MerchantPageAdmin):
    object_acts = (*MerchantPageAdmin.object_acts, INVITE_OWNER)

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        links = super().act_links(request, row)
        if request.user.has_perm(LOOK):
            url = reverse("admin:look", args=[row.pk], urlconf="shop.urls")
            links.append(ActLink(gettext_lazy("Look at the shop"), url, is_dangerous=False, slug="look"))
        return links


class UsersAdmin(StaffAdmin):
    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """A person of a merchant never becomes staff, which the database refuses too."""
        fixed = super().get_readonly_fields(request, obj)
        is_person = obj is not None and Membership.objects.filter(user_id=obj.pk, ended_at=None).exists()
        return [*fixed, *STAFF_FIELDS] if is_person else fixed


admin.site.unregister(User)
admin.site.register(User, UsersAdmin)
admin.site.unregister(Merchant)
admin.site.register(Merchant, MerchantWithPeopleAdmin)
