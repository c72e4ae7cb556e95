from tests.pictures.chrome import axe, chrome

__all__ = ["axe", "chrome"]
