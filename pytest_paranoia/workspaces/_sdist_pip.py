"""pip, made to fetch an sdist without building anything; run as a script in place of ``python -m pip``.

``pip download`` asks a source distribution's build backend for its metadata. That installs the backend from the
network, runs upstream's code on this machine, takes seconds, and fails where a build requirement is not served
(filelock and platformdirs need python-sbom). We want the verified archive and nothing else, so name and version, both
known from the pinned requirement, stand in for the metadata. With a pip whose insides have moved this does nothing
and pip builds as it always does.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any


def _skip_metadata_builds() -> None:
    from pip._internal.distributions import sdist

    original = sdist.SourceDistribution.prepare_distribution_metadata

    def prepare(self: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s,;*]+)", str(getattr(self.req, "req", "")))
        if wanted is None or not hasattr(self.req, "metadata_directory"):
            return original(self, *args, **kwargs)
        name, version = wanted.groups()
        folder = Path(tempfile.mkdtemp(dir=scratch), f"{re.sub('[-_.]+', '_', name)}-{version}.dist-info")
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        self.req.metadata_directory = str(folder)
        return None

    setattr(sdist.SourceDistribution, original.__name__, prepare)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="paranoia-pip-") as scratch:
        with contextlib.suppress(ImportError, AttributeError):
            _skip_metadata_builds()
        from pip._internal.cli.main import main

        sys.exit(main())
