/*
 * device.h - a device's part of the report: what was refused, how the memory lay, who held it.
 */
#ifndef ANALYZER_REPORT_DEVICE_H
#define ANALYZER_REPORT_DEVICE_H

#include "report/text/style.h"
#include "util/text/json.h"
#include "verdict/device/device.h"

/* Where the device did not fail, only with style->verbose. r->device is not NULL. */
void device_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* One device, as a member of that name or, for NULL, of an array. */
void device_json(struct json *j, const char *key, const struct device_report *d);
/* The member "unattributed": what no event explains, over time. */
void device_samples_json(struct json *j, const struct device_sample *samples, size_t count);
/* The member "spaces". */
void spaces_json(struct json *j, const struct verdict_result *r);

#endif
