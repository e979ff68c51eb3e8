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
    enabled = {job.value: float(jobs.is_enabled(job)) for job in NightlyJob}
    yield gauges("job_enabled", "Whether beat runs the nightly job.", LABEL, enabled)
    ended = {job: run for job in NightlyJob if (run := _newest(job)) is not None}
    done = {job: run for job in NightlyJob if (run := _newest(job, error="")) is not None}
    for name, help_text, values in [
        (
            "job_last_success_timestamp_seconds",
            "Unix time at which the job last ran to its end.",
            {job.value: run.ended_at.timestamp() for job, run in done.items() if run.ended_at},
        ),
        (
            "job_failed",
            "Whether the newest run stopped before its end.",
            {job.value: float(run.error != "") for job, run in ended.items()},
        ),
        (
            "job_differences",
            "What the newest complete run found.",
            {job.value: float(run.differences or 0) for job, run in done.items()},
        ),
        (
            "job_seconds",
            "Duration of the newest run.",
            {job.value: run.seconds or 0.0 for job, run in ended.items()},
        ),
    ]:
        yield gauges(name, help_text, LABEL, values)


def _newest(job: NightlyJob, **conditions: str) -> JobRun | None:
    ended = JobRun.objects.filter(job=job, ended_at__isnull=False, **conditions)
    return ended.order_by("-started_at").first()
