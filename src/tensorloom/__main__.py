"""`python -m tensorloom` is `tlc`."""

from tensorloom.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
