/* SPDX-License-Identifier: MIT */
/* digits.h - a deterministic generator of handwritten-looking digits, 28x28, no data file. */
#ifndef TRAIN_DIGITS_H
#define TRAIN_DIGITS_H

#include <stdint.h>

#define DIGITS_SIDE 28u
#define DIGITS_PIXELS (DIGITS_SIDE * DIGITS_SIDE)
#define DIGITS_CLASSES 10u
/** The test set's seed; the training set is drawn from digits_train_seed(user seed), which never equals it. */
#define DIGITS_TEST_SEED UINT64_C(0x7e57d161757e57d1)
#define DIGITS_TEST_COUNT 5000u

uint64_t digits_train_seed(uint64_t user_seed);

/**
 * Draws image number `index` of the set of `seed`: ink 0 (paper) to 255 into pixels[DIGITS_PIXELS], row by row. Value: its label.
 * An image depends on (seed, index) only, bit for bit, on any host: additions, multiplications, divisions and square roots of
 * IEEE floats in a fixed order (the file is built without contraction), no libm.
 */
uint8_t digits_draw(uint64_t seed, uint64_t index, uint8_t pixels[DIGITS_PIXELS]);

/** As many images in a row: pixels[count][DIGITS_PIXELS], labels[count]. */
void digits_fill(uint64_t seed, uint64_t first, uint32_t count, uint8_t *pixels, uint8_t *labels);

#endif
