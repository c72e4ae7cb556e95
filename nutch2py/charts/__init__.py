"""Charts as inline SVG, drawn from numbers, times and names without knowledge of tables or jobs.

A chart fills the width of its container. Horizontal positions are in percent and vertical ones in pixels, so that text
has the same size on a phone and on a desktop. Colours are CSS variables of ``style.css`` and follow the dark mode of
the system. No script is needed: each mark has a tooltip, and a table lists all values.

Exports: ``chart.Chart``, ``chart.read_stylesheet``, ``bar_chart.draw_bars``, ``gantt_chart.draw_gantt``,
``line_chart.draw_lines``.
"""
