"""NVIDIA devices, as ``nvidia-smi`` describes them."""
