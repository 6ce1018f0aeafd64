/*
 * errors.h - what results are called. The numbers are the driver's; the runtime has the same ones
 * under names of its own.
 */
#ifndef SIMGPU_ERRORS_H
#define SIMGPU_ERRORS_H

#include <stdbool.h>

const char *error_name(int error, bool driver); /* NULL: there is no such result */
const char *error_text(int error);

#endif
