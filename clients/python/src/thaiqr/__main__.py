"""`thaiqr`, and `python -m thaiqr`: the command line."""

import sys


def main() -> None:
    """Run the command line. Without its packages, say how to install them."""
    try:
        from thaiqr.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "zxingcpp", "PIL"}:
            raise
        sys.exit("The command line needs more packages: pip install 'thai-qr-payments-client[cli]'")
    app(prog_name="thaiqr")


if __name__ == "__main__":
    main()
