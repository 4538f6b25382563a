"""Export to ONNX, the check against torch, and encoding without torch."""
