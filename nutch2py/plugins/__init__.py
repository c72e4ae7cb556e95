"""Plug-ins: finding, loading and validating them, and handling their failures."""
