"""Licenses for installed programs: README.md is the guide."""

from .documents import Receipt, Refused
from .file import FileStore
from .program import Check, Program, Store
from .service import ServiceError

__all__ = ["Check", "FileStore", "Program", "Receipt", "Refused", "ServiceError", "Store"]
