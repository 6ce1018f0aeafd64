/*
 * none.c - stands in for the view where whyoom is built without ncurses.
 */
#include "watch/view/view.h"

int view_open(const char *source, struct view **out)
{
	(void)source;
	*out = NULL;
	return 1;
}

void view_close(struct view *v)
{
	(void)v;
}

int view_show(struct view *v, struct watch *const *watches, const struct watched *const *processes,
    size_t count)
{
	(void)v, (void)watches, (void)processes, (void)count;
	return 0;
}

void view_set_lines(struct view *v, const char *lines)
{
	(void)v, (void)lines;
}

int view_serve(struct view *v)
{
	(void)v;
	return 0;
}
