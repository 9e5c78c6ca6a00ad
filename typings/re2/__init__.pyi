"""Types for what Holdfast uses of google-re2 1.1, which has none."""

from typing import ClassVar

class error(Exception): ...  # noqa: N801, N818 - its name there
class _Encoding: ...

class Options:
    class Encoding:
        LATIN1: ClassVar[_Encoding]
        UTF8: ClassVar[_Encoding]

    encoding: _Encoding
    log_errors: bool
    max_mem: int
    never_capture: bool

class _Match: ...

class _Regexp:
    @property
    def programsize(self) -> int: ...
    def fullmatch(self, text: bytes | str) -> _Match | None: ...

def compile(pattern: bytes | str, options: Options | None = None) -> _Regexp: ...  # noqa: A001 - its name there
