/*
 * device.h - a device's part of the report: the refusal, what its memory looked like, and the
 * holders.
 */
#ifndef ANALYZER_REPORT_DEVICE_H
#define ANALYZER_REPORT_DEVICE_H

#include "report/text/style.h"
#include "util/text/json.h"
#include "verdict/device/device.h"

/* Append the device's part. If the device did not fail, only with style->verbose. Needs
 * r->device. */
void device_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append one device, as a member of that name or, for NULL, as an element of an array. */
void device_json(struct json *j, const char *key, const struct device_report *d);
/* Append the member "unattributed": the bytes that no event explains, over time. */
void device_samples_json(struct json *j, const struct device_sample *samples, size_t count);
/* Append the member "spaces". */
void spaces_json(struct json *j, const struct verdict_result *r);

#endif
