/*
 * errors.h - names and texts of result numbers. The runtime has the driver's numbers with names of
 * its own.
 */
#ifndef SIMGPU_ERRORS_H
#define SIMGPU_ERRORS_H

enum error_api { ERROR_DRIVER, ERROR_RUNTIME };

const char *error_name(int error, enum error_api api); /* NULL: no such result */
const char *error_text(int error);

#endif
