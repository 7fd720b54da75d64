"""`python -m tests.ollama_double --port 11434`: the double as a process of its own."""

import argparse
import contextlib
import json
import threading

from tests.ollama_double import OllamaDouble


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", default="{}", help="switches as JSON, e.g. '{\"cold\": 5}'")
    options = parser.parse_args()
    with OllamaDouble(port=options.port) as double:
        double.fault(**json.loads(options.fault))
        print(f"a double of Ollama answers at {double.url}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
