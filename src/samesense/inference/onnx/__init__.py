"""Export to ONNX, comparison with torch, and encoding without torch."""
