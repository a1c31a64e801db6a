"""Proving items: lint rules for agent-visible text, and checks that run both variants and all reference runs."""
