from tests.charts.chrome import axe, chrome

__all__ = ["axe", "chrome"]
