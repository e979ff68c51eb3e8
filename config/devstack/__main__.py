"""`python -m config.devstack` runs an instance; `... key` shows its key, `... reset` removes its data."""

import os
import signal
import sys

from config.devstack import StartError, ports
from config.devstack.environment import has_separate_workers, port
from config.devstack.instance import Instance, data_dir, wipe
from config.devstack.stack import Stack, show_again
from config.devstack.supervisor import StopRequestedError, Supervisor, print_text
from config.parent_process import exit_with_parent


def run(instance: Instance) -> None:
    """Run until stopped. Raises StartError, or OSError of the data folder."""
    instance.wait_for_leftovers()
    if not ports.is_free(port(), os.environ.get("HOST", ports.LOOPBACK)):
        raise StartError(f"Port {port()} is in use. Choose another: PORT={port() + 1} make run")
    has_separate_workers()  # a wrong value ends here, before a server starts
    supervisor = Supervisor(instance.pids)
    try:
        Stack(instance, supervisor).start()
        while True:
            supervisor.run_once()
    except StopRequestedError:
        print_text("Stopping.")
    finally:
        supervisor.stop()


def main(arguments: list[str]) -> int:
    # Ctrl-C before there is a supervisor ends the process without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "--with-parent" in arguments:
        exit_with_parent(os.getppid(), signal.SIGTERM)
    try:
        if "reset" in arguments:
            print(f"Removed {data_dir()}." if wipe(data_dir()) else "Nothing to remove.")
        elif "key" in arguments:
            print(show_again())
        else:
            with Instance(data_dir()) as instance:
                run(instance)
    except (StartError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
