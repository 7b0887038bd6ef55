// From the coefficients of a JPEG to pixels: the bits of libjpeg's accurate inverse DCT, "fancy" chroma upsampling, and
// conversion to RGB, for processors with AVX2.
#pragma once

#include <cstdint>

namespace settrain::jpeg {

#if defined(__x86_64__)
#define SETTRAIN_JPEG_AVX2 __attribute__((target("avx2,bmi2")))
#else
#define SETTRAIN_JPEG_AVX2
#endif

inline constexpr int64_t kBlock = 8;      // samples of a block's side
inline constexpr int64_t kOverread = 64;  // samples behind a row that may be read or written: vectors are not cut

/// How a colour plane is smaller than the image.
enum class Subsampling { kNone, kHorizontal, kBoth };

/// Writes the 8x8 samples of a block. `coefficients` and `quantisation`: [8][8] by vertical and horizontal frequency;
/// their products are cut to 16 bits.
void inverse_dct(const int16_t* coefficients, const int16_t* quantisation, uint8_t* samples, int64_t stride);

/// Enlarges a row of a colour plane to twice its width, by weights of 3 and 1 for the nearer and the further sample.
/// `near` and `far`: the rows above and below in the plane, the nearer one first, or twice the same without vertical
/// subsampling (kHorizontal). The samples before the first and behind the last of `count` are read too. `out`: 2
/// `count` numbers; up to kOverread behind them are overwritten.
void enlarge_row(const uint8_t* near, const uint8_t* far, Subsampling subsampling, int64_t count, uint8_t* out);

/// RGB of luminance and two colour differences, or R = G = B = y where these are null. `out`: 3 `count` numbers;
/// nothing behind them is written.
void convert_row(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int64_t count, uint8_t* out);

}  // namespace settrain::jpeg
