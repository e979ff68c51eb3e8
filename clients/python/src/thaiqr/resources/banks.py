"""The banks that money can be sent to."""

from thaiqr import models
from thaiqr.calls import Call, Mode, Resource, get, operation


class Banks(Resource[Mode]):
    """`client.banks`: the banks that withdrawals and refunds can name."""

    @operation
    def list(self) -> Call[tuple[models.Bank, ...]]:
        """List all banks."""
        return get("/v1/banks", models.read_banks)
