"""An environment for Harbor that needs docker alone, without compose: for its oracle agent on exported tasks.

Runs in Harbor's own Python, never in ours. BASE_VARIABLE names the image that takes the place of the recipe's FROM,
where no registry can be reached.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

BASE_VARIABLE = "HARBOR_PLAIN_DOCKER_BASE"


class PlainDocker(BaseEnvironment):
    """One container of an image built from ``environment/Dockerfile``."""

    @staticmethod
    def type() -> str:
        return "plain-docker"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    @property
    def _name(self) -> str:
        return "harbor-plain-" + re.sub(r"[^a-z0-9_.-]+", "-", self.session_id.lower())

    async def _docker(self, *arguments: str, timeout: float = 300) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            "docker",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
        )
        out, err = await asyncio.wait_for(process.communicate(), timeout)
        return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    async def _must(self, *arguments: str) -> str:
        code, out, err = await self._docker(*arguments)
        if code:
            raise RuntimeError(f"docker {arguments[0]}: {err or out}")
        return out

    async def start(self, force_build: bool) -> None:  # noqa: ARG002
        with tempfile.TemporaryDirectory() as scratch:
            context = Path(scratch, "context")
            shutil.copytree(self.environment_dir, context, symlinks=True)
            if base := os.environ.get(BASE_VARIABLE):
                recipe = context / "Dockerfile"
                recipe.write_text(re.sub(r"(?m)^FROM \S+", f"FROM {base}", recipe.read_text()))
            await self._must("build", "--quiet", "--network", "none", "--tag", self._name, str(context))
        await self._must(
            "run", "--detach", "--init", "--network", "none", "--name", self._name, self._name, "sleep", "900"
        )
        await self._must("exec", self._name, "mkdir", "-p", "/logs/agent", "/logs/verifier", "/logs/artifacts")

    async def stop(self, delete: bool) -> None:  # noqa: ARG002
        await self._docker("rm", "--force", self._name)
        await self._docker("rmi", "--force", self._name)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._must("cp", str(source_path), f"{self._name}:{target_path}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._must("exec", self._name, "mkdir", "-p", target_dir)
        await self._must("cp", f"{source_dir}/.", f"{self._name}:{target_dir}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._must("cp", f"{self._name}:{source_path}", str(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self._must("cp", f"{self._name}:{source_dir}/.", str(target_dir))

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        options = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        options += ["--workdir", cwd] if cwd else []
        # By number: an image may have no list of users.
        options += ["--user", "0" if user == "root" else str(user)] if user is not None else []
        arguments = ["exec", *options, self._name, "bash", "-c", command]
        code, out, err = await self._docker(*arguments, timeout=timeout_sec or 300)
        return ExecResult(stdout=out, stderr=err, return_code=code)
