"""Why money cannot be accepted or go back, in words that its merchant reads too."""

from typing import ClassVar

from audit_trail.acts import ActRefused


class MerchantRefusal(ActRefused):
    """A refusal of which merchants read `why`. The text of staff names people and other objects."""

    why: ClassVar[str]


class ProbableDuplicate(MerchantRefusal):
    why = "the bank probably reported the same money twice, and the operator must decide"


class NotConfirmed(MerchantRefusal):
    why = "only an uploaded statement reports this money, and a second source must confirm it first"


class BeingReversed(MerchantRefusal):
    why = "the bank is taking this money back"


class NoWayBack(MerchantRefusal):
    why = "it cannot be sent to the payer's account from here, and the operator must decide"


class NoExcess(MerchantRefusal):
    why = "it is not more than the amount of its payment, so it has no excess"
