"""Sessions in docker as a user starts them: records, refusals, resuming."""

from __future__ import annotations

from io import BytesIO

import pytest
from docker_lab import client, images_removed, none_left
from sessions import Session
from small_items import ItemFolder
from test_real_agents import known

from pytest_paranoia.environments.docker.provider import PROVIDER
from pytest_paranoia.environments.docker.settings import LABEL
from requirements import require

DOCKER = "--paranoia-environment=docker"


@pytest.fixture(autouse=True)
def _docker() -> None:
    require("docker")


def test_the_scripted_agents_give_the_numbers_of_local(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    items.scenario("coding/retries", self_built=True, insist=True)
    with images_removed("tiny"):
        Session(pytester, items, "--paranoia-run=local")
        session = Session(pytester, items, DOCKER, "--paranoia-run=docker", "-n2", "--paranoia-docker-starts=1")
        records = session.records(session.folder / "reports/docker")
        assert known(session, "docker") == known(session, "local"), session.text
        for record in records.values():
            image = client().inspect_image(record["environment"]["image"])
            assert image["Config"]["Labels"][f"{LABEL}.base-digest"] == PROVIDER.digest()
            assert record["environment"] == {"name": "docker", "isolated": True, "image": image["Id"]}
    assert "environment docker (isolated)" in session.text
    assert none_left("docker")
    first, second = (session.summary(session.folder / "reports" / run)["agents"] for run in ("local", "docker"))
    assert first == second


def test_a_run_is_not_resumed_on_another_base_or_environment(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    arguments = ["--model=minimal", "-kEplus"]
    with images_removed("tiny"):
        made = Session(pytester, items, DOCKER, *arguments, "--paranoia-run=made")
        assert made.code == 0, made.text
        base = PROVIDER.base()
        derived = b"FROM " + base.pinned.encode() + b"\nLABEL other=1\n"
        for _ in client().build(
            fileobj=BytesIO(derived), tag="paranoia-tests/derived:1", decode=True, rm=True, forcerm=True
        ):
            pass
        try:
            other = Session(
                pytester, items, DOCKER, *arguments, "--paranoia-resume=made",
                "--paranoia-docker-base=paranoia-tests/derived:1",
            )  # fmt: skip
            assert other.code == pytest.ExitCode.USAGE_ERROR
            assert f"made was made with environment name=docker isolated=True image={base.digest}" in other.text
            local = Session(pytester, items, *arguments, "--paranoia-resume=made")
            assert local.code == pytest.ExitCode.USAGE_ERROR
        finally:
            client().remove_image("paranoia-tests/derived:1", force=True)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--paranoia-docker-starts=0", "--paranoia-docker-starts: 0 given, expected a whole number of at least 1"),
        ("--paranoia-docker-base=", "--paranoia-docker-base: '' is no name of an image"),
        ("--paranoia-docker-base=no/such:image", "base image no/such:image is not there and cannot be fetched ("),
    ],
)
def test_what_cannot_be_meant_is_refused(pytester: pytest.Pytester, items: ItemFolder, option: str, said: str) -> None:
    items.pair()
    session = Session(pytester, items, DOCKER, option)
    assert session.code == pytest.ExitCode.USAGE_ERROR, session.text
    assert said in session.text
    assert "Traceback" not in session.text
    assert session.runs == []


def test_items_are_proved_in_docker_too(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    items.prove()
    with images_removed("tiny"):
        session = Session(pytester, items, "--paranoia-validate", DOCKER, active=False)
    local = Session(pytester, items, "--paranoia-validate", active=False)
    assert session.result.parseoutcomes() == local.result.parseoutcomes(), session.text
    assert session.code == local.code


def test_what_cannot_be_removed_is_told_and_hinders_no_trial(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    pytester.makeconftest(
        """
from pytest_paranoia.environments.docker import reaper
from pytest_paranoia.errors import InfrastructureError

def reap():
    raise InfrastructureError("environment-stop", "a container does not end: device is busy")

reaper.reap = reap
"""
    )
    with images_removed("tiny"):
        session = Session(pytester, items, DOCKER, "--model=minimal", "-kEplus")
    assert session.code == 0, session.text
    assert "what killed sessions had left is still there: a container does not end: device is busy" in session.text
