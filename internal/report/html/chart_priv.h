/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_HTML_CHART_PRIV_H
#define COP_REPORT_HTML_CHART_PRIV_H

#include "chart.h"

#define CHART_WIDTH 960.0
#define CHART_LEFT 130.0 /* room for names of rows */
#define CHART_RIGHT 16.0
#define CHART_BYTE 6.7 /* width of a byte of a name */
#define CHART_LEVELS 8

/* Opens a figure with its title and an image of that size; the keyboard can scroll it. */
void cop_chart_open(struct cop_buf *out, const char *title, double width, double height);
/* Ends the image. */
void cop_chart_close_image(struct cop_buf *out);
/* Opens and ends the part with the numbers, and ends the figure. */
void cop_chart_open_numbers(struct cop_buf *out);
void cop_chart_close_numbers(struct cop_buf *out);
void cop_chart_close(struct cop_buf *out);

/* A text in the drawing; class is one of ours. */
void cop_chart_label(struct cop_buf *out, const char *class, double x, double y, const char *text);
/* The name of a row, right-aligned in a space of this width and cut to fit. */
void cop_chart_row_name(struct cop_buf *out, double left, double y, const char *name);
/* Seconds along the bottom. */
void cop_chart_time_axis(struct cop_buf *out, double left, double width, double y, double seconds);
/* A colour and its meaning, in a paragraph of class keys. */
void cop_chart_key(struct cop_buf *out, const char *class, const char *name);

#endif
