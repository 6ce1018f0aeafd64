#include "watch/view/terminal.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* a terminal sends the bytes of a key at once; a person is slower */

/* Signals that end the process on the spot. */
static const int deadly[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
#define DEADLY (sizeof(deadly) / sizeof(*deadly))

static struct {
	SCREEN *screen; /* NULL: the terminal is not taken */
	struct termios before;
	char leave[256]; /* the bytes that leave the view, for a handler */
	size_t leave_bytes;
	struct sigaction old_deadly[DEADLY], old_suspend, old_go_on;
	bool utf8, at_exit;
} terminal;

static volatile sig_atomic_t must_suspend, must_go_on;

static void suspend_later(int signal)
{
	(void)signal;
	must_suspend = 1;
}

static void go_on_later(int signal)
{
	(void)signal;
	must_go_on = 1;
}

/* Only what a handler may call. The signal kills the process when this returns. */
static void leave_and_die(int signal)
{
	if (write(STDOUT_FILENO, terminal.leave, terminal.leave_bytes) < 0)
		terminal.leave_bytes = 0; /* there is nobody to tell */
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
	raise(signal);
}

static void handle(int signal, void (*handler)(int), int flags, struct sigaction *old)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigaction(signal, &action, old);
}

/* Append a capability, without its padding: "$<5>" is of terminals of paper. */
static void add_leave(const char *capability)
{
	const char *text = tigetstr(capability);

	if (!text || text == (char *)-1)
		return;
	while (*text && terminal.leave_bytes < sizeof(terminal.leave)) {
		const char *end = text[0] == '$' && text[1] == '<' ? strchr(text, '>') : NULL;

		if (end)
			text = end + 1;
		else
			terminal.leave[terminal.leave_bytes++] = *text++;
	}
}

static bool is_usable(void)
{
	const char *term = getenv("TERM");
	const char *move;
	int error;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetpgrp(STDOUT_FILENO) != getpgrp() || !term || !*term ||
	    setupterm(NULL, STDOUT_FILENO, &error) == ERR)
		return false;
	move = tigetstr("cup");
	return move && move != (char *)-1;
}

/* Without any wish of the user's, UTF-8: the text of other commands is so, too. */
static void set_language(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	bool any = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		any = any || (value && *value);
	}
	setlocale(LC_CTYPE, any ? "" : "C.UTF-8");
	terminal.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void set_colours(void)
{
	const char *no = getenv("NO_COLOR");

	if ((no && *no) || !has_colors())
		return;
	start_color();
	use_default_colors();
	for (short i = COLOR_RED; i <= COLOR_CYAN; i++)
		init_pair(i, i, -1);
}

int terminal_open(void)
{
	if (terminal.screen)
		return 1;
	if (!is_usable() || tcgetattr(STDIN_FILENO, &terminal.before))
		return 1;
	set_language();
	use_env(TRUE);
	use_tioctl(TRUE); /* the window's size, and not that of COLUMNS, which does not change */
	terminal.screen = newterm(NULL, stdout, stdin);
	if (!terminal.screen)
		return 1;
	terminal.leave_bytes = 0;
	add_leave("sgr0");
	add_leave("rmkx");
	add_leave("cnorm");
	add_leave("rmcup");
	for (size_t i = 0; i < DEADLY; i++)
		handle(deadly[i], leave_and_die, (int)SA_RESETHAND, &terminal.old_deadly[i]);
	handle(SIGTSTP, suspend_later, 0, &terminal.old_suspend);
	handle(SIGCONT, go_on_later, SA_RESTART, &terminal.old_go_on);
	if (!terminal.at_exit)
		terminal.at_exit = !atexit(terminal_close);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_colours();
	return 0;
}

void terminal_close(void)
{
	if (!terminal.screen)
		return;
	endwin();
	for (size_t i = 0; i < DEADLY; i++)
		sigaction(deadly[i], &terminal.old_deadly[i], NULL);
	sigaction(SIGTSTP, &terminal.old_suspend, NULL);
	sigaction(SIGCONT, &terminal.old_go_on, NULL);
	delscreen(terminal.screen);
	terminal.screen = NULL;
}

static void suspend(void)
{
	sigset_t set, before;

	must_suspend = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	handle(SIGTSTP, SIG_DFL, 0, NULL);
	sigprocmask(SIG_UNBLOCK, &set, &before); /* the caller may hold signals back */
	raise(SIGTSTP); /* returns when it goes on */
	sigprocmask(SIG_SETMASK, &before, NULL);
	handle(SIGTSTP, suspend_later, 0, NULL);
}

bool terminal_serve(void)
{
	if (!must_suspend && !must_go_on)
		return false;
	endwin();
	if (must_suspend)
		suspend();
	must_go_on = 0;
	/* The next refresh() sets the modes, too: the shell may have changed them. */
	clearok(curscr, TRUE);
	return true;
}

bool terminal_is_utf8(void)
{
	return terminal.utf8;
}
