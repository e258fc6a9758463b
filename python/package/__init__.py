"""kgrpo - checks, times and speeds up CUDA kernels, and trains language models to do it. The program is `kgrpo`."""
