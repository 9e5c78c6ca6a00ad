"""`python -m holdfast.server` is the `holdfast` command."""

from holdfast.server.entry import main

main()
