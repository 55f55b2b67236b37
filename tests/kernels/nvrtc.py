"""NVRTC without a GPU: compile a kernel's source for an architecture, to check that it does."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest


def _library() -> ctypes.CDLL:
    nvidia = pytest.importorskip("nvidia", reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    libraries = {path.name: path for folder in nvidia.__path__ for path in Path(folder).rglob("libnvrtc*.so*")}
    main = [path for name, path in libraries.items() if name.startswith("libnvrtc.so.")]
    if not main:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    for name, path in libraries.items():
        # NVRTC opens this one by its bare name, which only succeeds once it is loaded.
        if name.startswith("libnvrtc-builtins.so") and ".alt" not in name:
            ctypes.CDLL(str(path))
    return ctypes.CDLL(str(main[0]))


def compile_for(
    architecture: str, text: str, options: tuple[str, ...], names: tuple[str, ...] = ()
) -> tuple[bytes, str]:
    """(cubin, log) of `text`; an AssertionError with the compiler's log if it does not compile.

    Of a virtual architecture ("compute_75") there is PTX instead of a cubin: what the compiler checks, without the
    machine code, which takes as long again.
    """
    nvrtc = _library()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    for name in names:
        assert nvrtc.nvrtcAddNameExpression(program, name.encode()) == 0
    flags = [option.encode() for option in (*options, f"-arch={architecture}")]
    failed = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode()
    assert not failed, log
    if architecture.startswith("compute_"):
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), log
    return _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), log


def _text(size_of, get, program) -> bytes:
    size = ctypes.c_size_t()
    assert size_of(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert get(program, buffer) == 0
    return buffer.raw.rstrip(b"\0") if size.value else b""
