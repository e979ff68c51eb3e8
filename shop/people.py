"""The page of a shop on which its owner invites people, and ends what they may do.

An invitation is that of staff (`console.people.invitations`). A person who has a login already, for another
merchant, keeps it: the owner must know both its name and its email address.
"""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import invitations
from console.people.login_log import record_change
from console.people.roles import ShopRole
from core import clock
from core.console import sites
from core.observing.security_log import SecurityEvent
from merchants.models import Merchant
from operations.data_protection import shop_fence
from shop.models import Membership

SEE, INVITE = "shop.view_membership", "shop.invite_person"
ALREADY_HERE = gettext_lazy("This person belongs to the shop already.")
# Another merchant may have made it for itself, before this one invites the person.
SOMEBODYS_LOGIN = gettext_lazy(
    "This login exists. Ask the person whether it is theirs. If it is not, use another name."
)
# A merchant rarely has more than ten.
MAX_PEOPLE = 200


class PersonForm(forms.ModelForm[User]):
    has_login = forms.BooleanField(
        required=False, label=gettext_lazy("The person told me that this login is theirs already")
    )
    role = forms.ChoiceField(choices=ShopRole.choices, initial=ShopRole.CASHIER, label=gettext_lazy("Role"))

    class Meta:
        model = User
        fields = ["username", "first_name", "last_name", "email"]
        help_texts = {"username": gettext_lazy("It never changes, because records name people by it.")}

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["email"].required = True
        self.known: User | None = None

    def clean(self) -> dict[str, Any]:
        """A person who has a login already is known by name and email address."""
        filled = super().clean() or self.cleaned_data
        named = {"username": filled.get("username", ""), "email__iexact": filled.get("email", "")}
        self.known = User.objects.filter(**named, is_staff=False, is_superuser=False, is_active=True).first()
        return filled

    def validate_unique(self) -> None:
        if self.known is None:
            super().validate_unique()


def page(request: Any) -> HttpResponse:
    """The people of the shop. Its owner changes who they are."""
    may = request.user.has_perm
    if not may(SEE) or (request.method == "POST" and not may(INVITE)):
        raise PermissionDenied
    merchant = request.membership.merchant
    form = PersonForm(request.POST or None) if may(INVITE) else None
    if request.method == "POST" and "end" in request.POST:
        _end(request.membership, request.POST["end"])
        return HttpResponseRedirect(reverse("admin:people"))
    if form is not None and form.is_valid():
        try:
            return _invited(request, *invite(merchant, form, by=request.membership))
        except ValidationError as refusal:
            form.add_error(None, refusal)
    with shop_fence.lifted():  # the statement names the merchant
        found = Membership.objects.filter(merchant=merchant, ended_at=None).select_related("user")
        people = list(found.order_by("user__username")[:MAX_PEOPLE])
    return sites.page(request, "shop/people.html", _("People"), people=people, form=form)


def invite(merchant: Merchant, form: PersonForm, *, by: Membership | None) -> tuple[User, str]:
    """Make the person, and the link for somebody who has no login yet. by: an owner, or staff if None.

    Raises ValidationError by the fields of the form, PermissionDenied.
    """
    try:
        with transaction.atomic():
            return _invite(merchant, form, by)
    except IntegrityError:  # somebody else is faster
        raise ValidationError({"username": ALREADY_HERE}) from None


def _invite(merchant: Merchant, form: PersonForm, by: Membership | None) -> tuple[User, str]:
    _check_owner(merchant, by)
    needs_link = _needs_link(form, merchant)
    with recorded(Act.INVITED) as recording:
        person = form.known or form.save(commit=False)
        if form.known is None:
            person.save()
        if Membership.objects.filter(merchant=merchant, user_id=person.pk, ended_at=None).exists():
            raise ValidationError({"username": ALREADY_HERE})
        if not (needs_link or form.cleaned_data["has_login"]):
            raise ValidationError({"has_login": SOMEBODYS_LOGIN})
        made = Membership.objects.create(
            merchant=merchant, user_id=person.pk, role=form.cleaned_data["role"], created_at=clock.now()
        )
        recording.row = made
        recording.details["person"] = person.get_username()
        link = invitations.new_link(person, urlconf="shop.urls") if needs_link else ""
    record_change(SecurityEvent.ROLE_CHANGED, person, f"+{made.role} of {merchant.pk}")
    return person, link


def _needs_link(form: PersonForm, merchant: Merchant) -> bool:
    """Nobody makes a link for a person who has a password, or whom another merchant invited."""
    known = form.known
    if known is None:
        return True
    elsewhere = Membership.objects.filter(user_id=known.pk).exclude(merchant=merchant)
    return not (known.has_usable_password() or known.last_login or elsewhere.exists())


@transaction.atomic
def _end(by: Membership, key: str) -> None:
    """End what somebody else may do. One's own stays, so a shop keeps an owner."""
    _check_owner(by.merchant, by)
    found = Membership.objects.filter(merchant=by.merchant_id, ended_at=None).select_related("user")
    ended = found.filter(pk=key).first() if key.isdecimal() and len(key) < 19 else None
    if ended is None or ended.pk == by.pk:
        raise PermissionDenied
    with recorded(Act.MEMBERSHIP_ENDED, ended) as recording:
        ended.ended_at = clock.now()
        ended.save(update_fields=["ended_at"])
        recording.details["person"] = ended.user.get_username()
    _end_link(ended.user)
    record_change(SecurityEvent.ROLE_CHANGED, ended.user, f"-{ended.role} of {by.merchant_id}")


def _end_link(person: User) -> None:
    """The link of an invitation dies with it. Somebody who finds it would have the login later."""
    invited = User.objects.select_for_update().get(pk=person.pk)  # who may choose a password in this moment
    if not (invited.has_usable_password() or invited.last_login):
        invited.set_unusable_password()
        invited.save(update_fields=["password"])


def _check_owner(merchant: Merchant, by: Membership | None) -> None:
    """Let changes of one shop take turns, so that an owner stays. Raises PermissionDenied."""
    here = Membership.objects.select_for_update().filter(merchant=merchant, ended_at=None).order_by("id")
    owners = {each.pk for each in here if each.role == ShopRole.OWNER}
    if by is not None and by.pk not in owners:
        raise PermissionDenied


def _invited(request: HttpRequest, person: User, link: str) -> HttpResponse:
    shown = sites.page(request, "shop/invited.html", _("Invitation"), person=person, link=link)
    shown.headers["Cache-Control"] = "no-store"
    return shown
