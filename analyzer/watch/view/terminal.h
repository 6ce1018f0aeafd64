/*
 * terminal.h - takes the terminal with ncurses, and gives it back whatever happens: at the end, at
 * exit(), when the process is suspended, and when a signal kills it. One terminal a process.
 */
#ifndef ANALYZER_WATCH_TERMINAL_H
#define ANALYZER_WATCH_TERMINAL_H

#include <stdbool.h>

/* 0; 1: stdin and stdout are no terminal that can show a view, or the process is in the background;
 * then nothing has been changed. */
int terminal_open(void);
void terminal_close(void);
/* Do what signals asked for since the last call: stop until SIGCONT, take the terminal again. True
 * if all must be drawn again. */
bool terminal_serve(void);
bool terminal_is_utf8(void);

#endif
