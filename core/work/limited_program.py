"""`python -I limited_program.py PROGRAM MEMORY CPU PRINTED` runs a program of Python with these limits.

Bytes of memory, seconds of CPU, bytes of output. It imports nothing of this project, so that it starts fast.
"""

import os
import resource
import runpy
import sys

if __name__ == "__main__":
    program, *limits = sys.argv[1:]
    os.nice(5)  # web workers on the same CPU go first
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)
    for kind, limit in zip(kinds, map(int, limits), strict=True):
        resource.setrlimit(kind, (limit, limit))  # above it the system refuses memory, or kills the process
    runpy.run_path(program, run_name="__main__")
