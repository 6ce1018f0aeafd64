/*
 * driver_call.c - see driver.h.
 */
#include "simgpu/driver/driver.h"

int driver_begin(void)
{
	int rc = state_enter();

	if (!rc)
		model_lock();
	return rc;
}

int driver_end(int rc)
{
	model_unlock();
	return rc;
}

/* Ends a call that has begun unless rc is SIM_OK. */
static int end_on_error(int rc)
{
	return rc ? driver_end(rc) : SIM_OK;
}

int driver_begin_unsafe(struct context **context)
{
	int rc = driver_begin();

	if (rc)
		return rc;
	rc = context_need(context);
	return end_on_error(rc ? rc : capture_forbids());
}

int driver_begin_device(gpu_device ordinal, int *device)
{
	int rc = driver_begin();

	if (rc)
		return rc;
	*device = device_of(ordinal);
	return end_on_error(*device < 0 ? SIM_INVALID_DEVICE : SIM_OK);
}

int driver_begin_stream(gpu_stream handle, struct stream **stream)
{
	int rc = driver_begin();

	return rc ? rc : end_on_error(stream_get(handle, stream));
}

int driver_begin_block(gpu_ptr address, struct block **block)
{
	int rc = driver_begin();

	if (rc)
		return rc;
	*block = memory_find(address);
	return end_on_error(*block ? SIM_OK : SIM_INVALID_VALUE);
}

/* CUDA's result for a handle that is not of the kind. */
static int wrong_handle(enum object_kind kind)
{
	switch (kind) {
	case OBJECT_CONTEXT:
		return SIM_INVALID_CONTEXT;
	case OBJECT_EVENT:
	case OBJECT_ARRAY:
	case OBJECT_MODULE:
		return SIM_INVALID_HANDLE;
	default:
		return SIM_INVALID_VALUE;
	}
}

void *driver_begin_object(void *handle, enum object_kind kind, int *rc)
{
	void *object;

	*rc = driver_begin();
	if (*rc)
		return NULL;
	object = object_get(handle, kind);
	if (!object)
		*rc = driver_end(wrong_handle(kind));
	return object;
}

int driver_end_synchronised(int device)
{
	pool_after_synchronise(device);
	model_unlock();
	host_wait();
	return SIM_OK;
}

int driver_end_captured(struct stream *stream, const struct node *what)
{
	struct node *node = capture_node(stream, what->type);

	if (!node)
		return driver_end(SIM_OUT_OF_MEMORY);
	node->to = what->to;
	node->from = what->from;
	node->size = what->size;
	node->width = what->width;
	node->call = what->call;
	node->data = what->data;
	return driver_end(SIM_OK);
}
