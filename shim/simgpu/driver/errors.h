/*
 * errors.h - names and texts of result numbers. The runtime has the driver's numbers with names of
 * its own.
 */
#ifndef SIMGPU_ERRORS_H
#define SIMGPU_ERRORS_H

#include <stdbool.h>

const char *error_name(int error, bool driver); /* NULL: no such result */
const char *error_text(int error);

#endif
