/*
 * fleet_page.h - `whyoom fleet page`: all answers as a page, with the reports that it leads to.
 */
#ifndef ANALYZER_CMD_FLEET_PAGE_H
#define ANALYZER_CMD_FLEET_PAGE_H

#include "util/text/err.h"

/* Make the folder, which must not exist, with index.html and a report's page of an example of each
 * of the first crashes that are the same, where its traces are here. The folder appears with all
 * that or not at all. 0; negative errno with err. */
int fleet_page_write(const char *database, const char *folder, struct err *err);

#endif
