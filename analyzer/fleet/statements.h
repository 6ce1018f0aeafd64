/*
 * statements.h - the files of sql/, which the build makes arrays of. Each ends with a NUL.
 */
#ifndef ANALYZER_FLEET_STATEMENTS_H
#define ANALYZER_FLEET_STATEMENTS_H

extern const unsigned char fleet_row[], fleet_error[], fleet_load_sql[], fleet_schema[],
    fleet_summary[];
#define QUESTION(name) extern const unsigned char fleet_##name[];
#include "fleet/questions.def"
#undef QUESTION

#endif
