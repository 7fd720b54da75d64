"""`python -m nightly [JOB]… [OPTION]…` is `kb nightly run [JOB]… [OPTION]…`."""

import sys

from agent_server.doors.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["nightly", "run", *sys.argv[1:]]))
