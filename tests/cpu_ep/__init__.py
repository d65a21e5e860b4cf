"""The built-in CPU EP in stock onnxruntime and in ours: every kernel against the reference or NumPy."""
