"""A store in a file."""

import contextlib
import os
import pathlib
import tempfile


class FileStore:
    """Keeps the state of a program in a file that only its user reads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(path)

    def load(self) -> str | None:
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            return ""

    def save(self, text: str) -> None:
        """Replaces the file in one step: a reader or a crash finds the old text or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name + ".")  # mode 600
        try:
            with open(number, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
