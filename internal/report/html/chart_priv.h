/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_HTML_CHART_PRIV_H
#define COP_REPORT_HTML_CHART_PRIV_H

#include "chart.h"

#define CHART_WIDTH 960.0
#define CHART_LEFT 130.0 /* space for row names */
#define CHART_RIGHT 16.0
#define CHART_BYTE 6.7 /* width of one byte of a name */
#define CHART_LEVELS 8

/* Opens a figure with a title and an image of this size that scrolls with the keyboard. */
void cop_chart_open(struct cop_buf *out, const char *title, double width, double height);
/* Closes the image. */
void cop_chart_close_image(struct cop_buf *out);
/* Open and close the table of numbers, and close the figure. */
void cop_chart_open_numbers(struct cop_buf *out);
void cop_chart_close_numbers(struct cop_buf *out);
void cop_chart_close(struct cop_buf *out);

/* Draws text in the image; class is trusted. */
void cop_chart_label(struct cop_buf *out, const char *class, double x, double y, const char *text);
/* Draws a row name, right-aligned and truncated to the width `left`. */
void cop_chart_row_name(struct cop_buf *out, double left, double y, const char *name);
/* Draws a time axis in seconds along the bottom. */
void cop_chart_time_axis(struct cop_buf *out, double left, double width, double y, double seconds);
/* Adds a legend entry; the caller opens the paragraph of class keys. */
void cop_chart_key(struct cop_buf *out, const char *class, const char *name);

#endif
