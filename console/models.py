"""Signs of life, for readiness."""

from django.db import models


class Heartbeat(models.Model):
    """When a part last did its work: `beat`, or a queue that was served."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
