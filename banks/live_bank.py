"""Common code of the adapters to banks of live merchants: declarations, and an inquiry for each day."""

from abc import abstractmethod
from datetime import date
from typing import Any, ClassVar

from banks import base, parsing
from banks.credentials import CredentialField
from banks.http_client import CallFailed


class LiveBank(base.Bank):
    """A bank of live merchants, configured for one of them."""

    title: ClassVar[str]
    credential_fields: ClassVar[tuple[CredentialField, ...]]
    authentication_note: ClassVar[str]  # how the bank proves its identity, as the console shows it
    reference3_help: ClassVar[str] = ""  # why codes need a third reference; empty if they need none

    def __init__(self, config: base.AdapterConfig) -> None:
        self._biller_id, self._credentials = config.biller_id, config.credentials

    @staticmethod
    def calls_needed(inquiry: base.InquiryRequest) -> int:
        """One call for each day in Bangkok; 1 for a time range that `inquire` refuses."""
        try:
            return len(parsing.bangkok_days(inquiry.starts_at, inquiry.ends_at))
        except ValueError:
            return 1

    def inquire(self, inquiry: base.InquiryRequest) -> base.InquiryResult:
        """Inquire each day in Bangkok. The bodies of several days are joined by line feeds."""
        try:
            days = parsing.bangkok_days(inquiry.starts_at, inquiry.ends_at)
            bodies = self._inquire_days(inquiry, days)
        except CallFailed as error:
            raise base.InquiryFailed(str(error), cause=error.cause) from None
        except ValueError as error:
            raise base.InquiryFailed(str(error)) from None
        found: list[base.ReportedTransaction] = []
        for body in bodies:
            try:
                found += self._parse_inquiry(parsing.parse_json(body), inquiry)
            except ValueError as error:
                raise base.UnreadableMessage(str(error), body=body) from None
        return base.InquiryResult(b"\n".join(bodies), tuple(dict.fromkeys(found)))

    @abstractmethod
    def _inquire_days(self, inquiry: base.InquiryRequest, days: list[date]) -> list[bytes]:
        """The bodies of clear answers only. Raises CallFailed, InquiryFailed."""

    @abstractmethod
    def _parse_inquiry(
        self, data: dict[str, Any], inquiry: base.InquiryRequest
    ) -> list[base.ReportedTransaction]:
        """The transactions of one day. Raises ValueError, also for the answer to another inquiry."""
