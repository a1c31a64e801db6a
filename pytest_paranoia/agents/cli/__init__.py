"""Command-line agents: real programs that run inside the environment and call their model through the relay."""
