"""Gates: asked before each tool call of an agent whether it may run."""
