"""Code that may hang, crash or exit runs in a child process that the kernel can kill."""
