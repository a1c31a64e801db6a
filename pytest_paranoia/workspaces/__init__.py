"""Pristine workspaces: pinned sources, reproducible commits, test environments; prepared once per machine."""
