"""Agents: a harness plus a model, behind one Protocol (:mod:`pytest_paranoia.agents.base`)."""
