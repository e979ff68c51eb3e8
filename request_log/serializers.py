"""Query parameters and objects of the request log."""

from core import ids
from core.http import fields, paging

METHODS = ("GET", "POST", "PATCH", "DELETE")
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")


class RequestQuery(paging.ZonedQuery):
    """Filters of the request log."""

    limit = fields.QueryInteger(
        min_value=1, max_value=paging.MAX_LIMIT, default=paging.DEFAULT_LIMIT, help_text="Results per page."
    )
    after = fields.Text(
        min_length=1,
        max_length=ids.MAX_LENGTH,
        required=False,
        help_text="The `next_after` of the page before: the older requests that follow it.",
    )
    start_date = fields.QueryInstant(
        required=False, help_text="Began on or after this date (of `timezone`) or instant."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Began on or before this date (of `timezone`) or instant."
    )
    status = fields.Choice(STATUS_CLASSES, required=False, help_text="Only answers of this class.")
    method = fields.Choice(METHODS, required=False, help_text="Only requests by this method.")
    route = fields.Text(
        min_length=1, max_length=120, required=False, help_text="Only this route, as `route` shows it."
    )
    key = fields.Text(
        min_length=1,
        max_length=16,
        required=False,
        help_text="Only requests by the key with this public part.",
    )
    request_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only requests with this id."
    )
    payment_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only requests about this payment."
    )
