/* table.c - the commands as in main.c, which is not in the library. */
#include "cmd/cmd.h"

const struct command *const cmd_table[] = {&cmd_run, &cmd_report, &cmd_sites, &cmd_check, NULL};
