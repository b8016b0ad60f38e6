"""``python -m mvlstm``: the command line without its script."""

from __future__ import annotations

from mvlstm.cli.app import main

if __name__ == "__main__":
    main()
