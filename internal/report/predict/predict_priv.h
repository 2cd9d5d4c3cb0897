/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_PREDICT_PRIV_H
#define COP_REPORT_PREDICT_PRIV_H

#include "report/predict/predict.h"

#define PREDICT_PATHS 64u
/* The size of the kernel's read requests with the default read-ahead. */
#define PREDICT_READ (128 * COP_KIB)

#endif
