"""Peak bytes of real training steps, read off fake CUDA tensors. See README.md."""
