"""`python -m tests.systems.noisy_neighbours.endpoints MERCHANT_ID COUNT URL`: make verified endpoints.

They get no probe. It runs with the settings of the instance. Its caller raises the limit of endpoints.
"""

import sys

import django

django.setup()

from core import clock  # noqa: E402
from merchants.models import Merchant  # noqa: E402
from webhooks import endpoints  # noqa: E402
from webhooks.models import EndpointHealth  # noqa: E402


def main() -> None:
    merchant_id, count, url = sys.argv[1:]
    merchant, now = Merchant.objects.get(pk=merchant_id), clock.now()
    for _ in range(int(count)):
        endpoint = endpoints.prepare(merchant=merchant, url=url, events=["payment.pending"], now=now)
        endpoints.store(endpoint)
    EndpointHealth.objects.filter(endpoint__merchant=merchant).update(verified_at=now)


if __name__ == "__main__":
    main()
