/* The library of a custom operation: it exports what TensorFlow asks of one, and no plug-in. */
void TF_InitKernel(void);
void TF_InitKernel(void) {}
