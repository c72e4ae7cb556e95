"""Plug-ins: finding, loading and validating them, and handling their failures.

Exports: ``loading.enabled_plugins``, ``loading.create_ordered_plugins``, ``plugin_failures.PluginError``.
"""
