"""Geometry of the page's charts. Templates turn it into inline SVG; nothing here knows of markup or colours."""
