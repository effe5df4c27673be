"""`python -m gateway.broker`."""

from gateway.broker.main import main

main()
