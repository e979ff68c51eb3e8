"""Python runs this file first when its folder is in PYTHONPATH: the clock is CLOCK_OFFSET seconds wrong.

The service reads only `time.time` and `time.time_ns` (core.clock). Deadlines follow the monotonic clock,
which keeps its pace on a machine with a wrong clock too.
"""

import os
import time

_OFFSET = int(os.environ["CLOCK_OFFSET"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _OFFSET
time.time_ns = lambda: _time_ns() + _OFFSET * 10**9
