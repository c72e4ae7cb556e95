"""When a page is due: default and adaptive fetch schedules.."""
