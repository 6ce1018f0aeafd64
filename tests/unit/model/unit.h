/* unit.h - what every test here includes, in the order that cmocka asks for. */
#ifndef TESTS_UNIT_MODEL_UNIT_H
#define TESTS_UNIT_MODEL_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those */
#include <cmocka.h>

#include "../dice.h"

#define KiB 1024ull
#define MiB (1024ull * 1024)
#define GiB (1024ull * 1024 * 1024)

#endif
