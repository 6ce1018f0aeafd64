/*
 * draw.h - draws the view into ncurses' screen, for any size from 40 columns and 5 rows. Reads the
 * state, and changes only where lists are scrolled to.
 */
#ifndef ANALYZER_WATCH_DRAW_H
#define ANALYZER_WATCH_DRAW_H

#include "util/vec.h"
#include "watch/view/list.h"

enum draw_focus { DRAW_PROCESSES, DRAW_SITES };
enum draw_panel { DRAW_LISTS, DRAW_HELP, DRAW_STACK };

struct draw_state {
	struct list list;
	const char *source; /* what is watched */
	enum draw_focus focus; /* the list in which up and down move */
	enum draw_panel panel; /* what stands below the headline */
	bool filtering; /* the filter is being typed */
	bool frozen;
	char *lines; /* below the headline, each with its end, safe; or NULL */
	char *note; /* the latest remark, safe; or NULL */
	char *stack_title; /* safe */
	VEC(char *) stack; /* lines of DRAW_STACK, safe */
	size_t scroll; /* the first line of the stack, or of the help */
	size_t page; /* lines that it can show; set by draw() */
};

void draw(struct draw_state *s);

#endif
