"""Reading what pgbench prints."""

from bench.pgbench import PROGRESS


def test_progress_lines_have_the_rate_of_each_second() -> None:
    shown = """pgbench (18.6)
progress: 1.0 s, 77.0 tps, lat 84.224 ms stddev 67.492, 0 failed
progress: 2.0 s, 178.4 tps, lat 44.343 ms stddev 9.603, 0 failed
"""
    assert PROGRESS.findall(shown) == ["77.0", "178.4"]
