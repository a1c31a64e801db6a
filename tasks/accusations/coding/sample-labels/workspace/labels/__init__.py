"""Numbers for sample tubes."""
