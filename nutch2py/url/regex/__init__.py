"""Regular expressions of Java and their cost: translation, complexity check, prefilter."""
