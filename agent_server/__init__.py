"""Knowledge Bank: retrieval with citations on nothing but Postgres."""

__version__ = "0.1.0"
