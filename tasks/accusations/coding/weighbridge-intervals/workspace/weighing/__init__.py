"""From the load cells to the ticket."""
