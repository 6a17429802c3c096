"""One imaginary CUDA device for a CPU build of torch. Import this module before torch.

Autocast lists, autograd streams and attention kernels are chosen by device, so the tensors must say `cuda`. The C++
side of the pretence is cuda_shim.cpp; the Python side is a handful of answers that torch.cuda gives.
"""

import ctypes
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("cuda_shim.cpp")


def compile_shim(torch_root: Path) -> Path:
    """Compile cuda_shim.cpp with g++ once per torch version and return the library."""
    version = (torch_root / "version.py").read_bytes()
    name = f"cuda_shim_{hashlib.sha256(SOURCE.read_bytes() + version).hexdigest()[:16]}_{os.getuid()}.so"
    library = Path(tempfile.gettempdir()) / name
    if not library.exists():
        lib = torch_root / "lib"
        command = ["g++", "-shared", "-fPIC", "-O0", "-std=c++20", f"-I{torch_root / 'include'}", str(SOURCE)]
        command += ["-o", f"{library}.{os.getpid()}", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lc10", "-ltorch_cpu"]
        subprocess.run(command, check=True)
        os.replace(f"{library}.{os.getpid()}", library)
    return library


def install() -> None:
    """Load the shim ahead of torch and answer torch.cuda's questions."""
    if "torch" in sys.modules:
        raise RuntimeError("traced.device must be imported before torch: the shim has to be loaded first")
    torch_root = Path(importlib.util.find_spec("torch").origin).parent
    ctypes.CDLL(str(compile_shim(torch_root)), mode=ctypes.RTLD_GLOBAL)
    import torch

    if torch.version.cuda:
        raise RuntimeError("this torch is a CUDA build; the tracer needs a CPU build of the same version")
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda._lazy_init = lambda: None
    torch.cuda.is_bf16_supported = lambda *arguments, **options: True
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.cuda.is_current_stream_capturing = lambda: False
    torch._C._cuda_getCurrentRawStream = lambda device: 0


install()
