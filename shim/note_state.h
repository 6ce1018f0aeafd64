/*
 * note_state.h - what lifecycle.c needs of note.c.
 */
#ifndef SHIM_NOTE_STATE_H
#define SHIM_NOTE_STATE_H

/* In the child of a fork: its own levels are due. */
void note_forked(void);

#endif
