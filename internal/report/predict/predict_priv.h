/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_PREDICT_PRIV_H
#define COP_REPORT_PREDICT_PRIV_H

#include "report/predict/predict.h"

#define PREDICT_PATHS 64u
/* What the kernel asks a storage for at once, if it reads ahead no further. */
#define PREDICT_READ (128 * COP_KIB)

#endif
