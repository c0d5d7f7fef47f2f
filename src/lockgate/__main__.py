"""`python -m lockgate`, and the `lockgate` command."""

from lockgate.faces.cli.app import main

if __name__ == "__main__":
    main()
