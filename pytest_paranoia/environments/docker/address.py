"""Which daemon is meant: what ``docker`` itself would talk to, said by DOCKER_HOST, DOCKER_CONTEXT or its settings."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from pytest_paranoia.environments.docker.settings import GONE
from pytest_paranoia.errors import InfrastructureError

DEFAULT = "unix:///var/run/docker.sock"
_EXPECTED = "expected unix:///path/to/docker.sock, or nothing for the daemon of this machine"
_PASSWORD = re.compile(r"(?<=:)[^:/@]*(?=@)")


def chosen() -> dict[str, Any]:
    """Return ``base_url`` and, where it is wanted, ``tls`` for the client.

    ``DOCKER_HOST`` comes first, then the context that ``DOCKER_CONTEXT`` or Docker's settings name, as for the command
    ``docker``. Raises InfrastructureError that names the variable, what is wrong and what to do.
    """
    from docker.errors import TLSParameterError
    from docker.utils import kwargs_from_env

    host, source = os.environ.get("DOCKER_HOST") or "", "DOCKER_HOST"
    if not host:
        host, source = _of_context()
    url = _checked(host or DEFAULT, source)
    try:
        found: dict[str, Any] = {**kwargs_from_env()}
    except TLSParameterError:
        raise _wrong(
            f"DOCKER_TLS_VERIFY or DOCKER_CERT_PATH ask for TLS, but {_certificates()} lacks ca.pem, cert.pem or "
            "key.pem: put them there, name their folder with DOCKER_CERT_PATH, or unset both for a local socket"
        ) from None
    return {**found, "base_url": url}


def shown(url: str) -> str:
    """Return an address in one line and without its password."""
    return _PASSWORD.sub("***", url if url.isprintable() else repr(url))


def settings_folder() -> Path:
    """Return the folder in which Docker's command line keeps its settings and contexts."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")


def _checked(url: str, source: str) -> str:
    from docker.errors import DockerException
    from docker.utils import parse_host

    if url.strip().startswith("ssh:"):
        raise _wrong(
            f"{source}: {shown(url)!r} is a daemon on another machine, which does not see the files of this one; "
            f"{_EXPECTED}"
        )
    try:
        parse_host(url)
    except (DockerException, ValueError) as error:
        what = shown(" ".join(str(error).split()))
        raise _wrong(f"{source}: {shown(url)!r} is no address of a daemon ({what}); {_EXPECTED}") from None
    return url.strip()


def _of_context() -> tuple[str, str]:
    """Return the address that a context of Docker's command line has, and where its name was found."""
    folder = settings_folder()
    name, source = os.environ.get("DOCKER_CONTEXT") or "", "DOCKER_CONTEXT"
    if not name:
        settings = folder / "config.json"
        source = f"{settings}: key 'currentContext'"
        try:
            name = str(json.loads(settings.read_text(encoding="utf-8")).get("currentContext") or "")
        except (OSError, ValueError, AttributeError):  # Docker's own client complains about that file
            return "", source
    if name in ("", "default"):
        return "", source
    meta = folder / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    try:
        host = str(json.loads(meta.read_text(encoding="utf-8"))["Endpoints"]["docker"]["Host"])
    except FileNotFoundError:
        there = ", ".join(["default", *_contexts(meta.parent.parent)])
        raise _wrong(f"{source}: there is no context {name!r}; there: {there}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _wrong(
            f"{source}: the context {name!r} cannot be read from {meta} ({error}); make it anew with "
            "`docker context create`, or name a daemon with DOCKER_HOST"
        ) from None
    return host, f"{source}: context {name!r}"


def _contexts(folder: Path) -> list[str]:
    names = []
    for path in sorted(folder.glob("*/meta.json")):
        try:
            names.append(str(json.loads(path.read_text(encoding="utf-8"))["Name"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return names


def _certificates() -> str:
    return os.environ.get("DOCKER_CERT_PATH") or str(Path.home() / ".docker")


def _wrong(text: str) -> InfrastructureError:
    return InfrastructureError(GONE, text)
