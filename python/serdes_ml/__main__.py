"""``python -m serdes_ml`` is the command ``serdes``."""

from ._command import main

if __name__ == "__main__":
    main()
