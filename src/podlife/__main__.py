"""`python -m podlife` is the `podlife` command."""

from podlife.cli.main import main

if __name__ == "__main__":
    main()
