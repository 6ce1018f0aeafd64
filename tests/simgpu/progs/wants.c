/* A library that wants CUDA's libraries, which are not there. */
const char *cublasGetStatusString(int status);
int cublasSgemm_v2(void);
int cudnnCreate(void **handle);
int ncclCommDestroy(void *communicator);

const char *text(void);
int sum(void);

const char *text(void)
{
	return cublasGetStatusString(1);
}

int sum(void)
{
	void *handle;

	return cublasSgemm_v2() * 100000 + cudnnCreate(&handle) * 10 + ncclCommDestroy(0);
}
