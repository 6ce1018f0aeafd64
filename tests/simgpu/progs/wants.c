/* A library that imports from CUDA's libraries, which are missing. */
const char *cublasGetStatusString(int status);
int cublasSgemm_v2(void);
int cublasHgemm(void); /* without naming the library */
int cudnnCreateRNNDescriptor(void **out);
int cudnnSetConvolutionGroupCount(void *descriptor, int count);
int ncclCommSplit(void);
int ncclAllReduce(void);

const char *text(void);
int results(int out[6]);

const char *text(void)
{
	return cublasGetStatusString(1);
}

int results(int out[6])
{
	void *handle;

	out[0] = cublasSgemm_v2();
	out[1] = cublasHgemm();
	out[2] = cudnnCreateRNNDescriptor(&handle);
	out[3] = cudnnSetConvolutionGroupCount(0, 1);
	out[4] = ncclCommSplit();
	out[5] = ncclAllReduce();
	return 6;
}
