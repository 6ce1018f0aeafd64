/* rooms.c - what is left of limits now, by the last measurement and the events since. */
#include "verdict/forecast/rooms.h"

#include "util/num.h"

bool rooms_of_host(const struct model *m, struct room *out)
{
	uint64_t live = m->blocks.bytes + m->maps.bytes;
	struct room rooms[FAILURE_ROOMS];
	size_t count = failure_rooms(m, NULL, rooms);

	for (size_t i = 0; i < count; i++) {
		/* Addresses and data are asked for seldom. What was acquired since takes from
		 * them, and what was released stays with the allocator. */
		if (rooms[i].limit == LIMIT_AS || rooms[i].limit == LIMIT_DATA)
			rooms[i].left = num_less(rooms[i].left,
			    num_less(live, timeline_live(&m->timeline, rooms[i].measured_ns)));
		if (!i || rooms[i].left < out->left)
			*out = rooms[i];
	}
	return count > 0;
}

bool rooms_of_device(const struct space *cuda, struct room *out)
{
	const struct device_sample *s = &cuda->last_sample;

	if (!s->total)
		return false;
	/* The driver was asked at that time, and the events tell what came since. */
	*out = (struct room){.bytes = s->total,
	    .left = num_less(
		s->free + s->explained, cuda->model->blocks.bytes + cuda->model->maps.bytes),
	    .measured_ns = s->time_ns};
	return true;
}
