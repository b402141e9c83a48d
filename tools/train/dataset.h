/* SPDX-License-Identifier: MIT */
/* dataset.h - labelled 28x28 images: from the built-in generator or from IDX files. */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#define DATASET_PIXELS 784u
#define DATASET_CLASSES 10u

struct dataset {
    uint32_t count;
    uint8_t *pixels;   /**< count * DATASET_PIXELS, 0 background to 255 ink */
    uint8_t *labels;   /**< count, each below DATASET_CLASSES */
};

enum dataset_part { DATASET_TRAIN, DATASET_TEST };

/**
 * Loads MNIST's files ("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte", ..., each plain or .gz) from a folder, at most limit images
 * (0: all). False: *set_out is untouched and `why` holds one line that names file and mistake.
 */
bool dataset_load_idx(const char *dir, enum dataset_part part, uint32_t limit, struct dataset *set_out, char *why, uint32_t why_B);
/** Draws `count` images of the generator's set of `seed`, a few at a time; asked_to_stop (may be NULL) is looked at in between. False: stopped, or no memory. */
bool dataset_draw(uint64_t seed, uint32_t count, bool (*asked_to_stop)(void), struct dataset *set_out);
void dataset_free(struct dataset *set);

#endif
