"""Regular expressions of Java and their cost: translation, complexity check, prefilter.

Exports: ``java_regex.compile_java``, ``regex_complexity.estimate_complexity``, ``regex_prefilter.build_prefilter``.
"""
