"""`python -m podlife` is the `podlife` command."""

from podlife.cli import main

if __name__ == "__main__":
    main()
