"""``python -m colbert_prf``: the command ``colbert-prf``."""

from colbert_prf.cli import main

if __name__ == "__main__":
    main()
