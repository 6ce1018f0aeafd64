/*
 * history.h - reads the facts of size, keep, feeds and index_of out of the steps of all places.
 */
#ifndef ANALYZER_MODEL_HISTORY_H
#define ANALYZER_MODEL_HISTORY_H

#include "model/place.h"

void history_read(struct places *p);

#endif
