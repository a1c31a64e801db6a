"""Sensors: counts and rule matches over a finished run. They read what was recorded and never run anything."""

from pytest_paranoia.scoring.sensors.counts import count
from pytest_paranoia.scoring.sensors.detectors import Hit, detect
from pytest_paranoia.scoring.sensors.view import Message, RunView

__all__ = ["Hit", "Message", "RunView", "count", "detect"]
