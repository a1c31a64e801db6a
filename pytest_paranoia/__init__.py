"""Measure unnecessary defensive work and damage done under false accusation by coding agents."""

__version__ = "0.1.0"
