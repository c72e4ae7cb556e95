"""Pictures: data in, inline SVG out. They know numbers, times and names, and nothing of tables or jobs.

A drawing is as wide as its place: what lies along it stands in percent, what lies across it in pixels, so that letters
have one size on a phone and on a desk. Colours are variables of ``style.css``, which follow the system's dark mode. No
script is needed; each mark says its value when it is pointed at, and a table beside the drawing has them all.
"""
