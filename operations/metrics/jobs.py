"""Metrics of the nightly jobs: whether they run, when each last did, how long it took and what it found."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from operations.metrics.families import gauges
from operations.models import JobRun, NightlyJob
from operations.nightly import jobs

# Not `job`: Prometheus gives each series a label of this name, with the name of the scrape.
LABEL = "nightly_job"


def read() -> Iterator[Metric]:
    """A job that never ran has only its first value."""
    yield gauges("job_enabled", LABEL, {job.value: float(jobs.is_enabled(job)) for job in NightlyJob})
    ended, done = _newest(), _newest(error="")
    at = {job: run.ended_at.timestamp() for job, run in done.items() if run.ended_at}
    yield gauges("job_last_success_timestamp_seconds", LABEL, at)
    yield gauges("job_failed", LABEL, {job: float(run.error != "") for job, run in ended.items()})
    yield gauges("job_differences", LABEL, {job: float(run.differences or 0) for job, run in done.items()})
    yield gauges("job_seconds", LABEL, {job: run.seconds or 0.0 for job, run in ended.items()})


def _newest(**conditions: str) -> dict[str, JobRun]:
    ended = JobRun.objects.filter(ended_at__isnull=False, **conditions).order_by("-started_at")
    return {job.value: run for job in NightlyJob if (run := ended.filter(job=job).first()) is not None}
