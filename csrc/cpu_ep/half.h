/* float16 and bfloat16 as uint16_t: exact widening, narrowing rounded once to nearest even. */
#ifndef ORT_ABI_CPU_EP_HALF_H
#define ORT_ABI_CPU_EP_HALF_H

#include <stdint.h>
#include <string.h>

static inline float cpu_float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float cpu_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 31u;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) return cpu_float_from_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return cpu_float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float subnormal = (float)fraction * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

static inline float cpu_bfloat_to_float(uint16_t bfloat) {
  return cpu_float_from_bits((uint32_t)bfloat << 16);
}

/* A double as sign, `exponent_bits` and `fraction_bits` in 16 bits. Floats widen to double exactly, so this
 * one function rounds both. */
static inline uint16_t cpu_narrow_double(double value, int exponent_bits, int fraction_bits) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint64_t sign = bits >> 63 << 15;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & 0xfffffffffffffu;
  uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits;
  if (exponent == 1024 && fraction != 0) /* a NaN stays one: quiet, with the payload's upper bits */
    return (uint16_t)(sign | infinity | 1ull << (fraction_bits - 1) | fraction >> (52 - fraction_bits));
  int smallest = 2 - (1 << (exponent_bits - 1));
  if (exponent >= 1 << (exponent_bits - 1)) return (uint16_t)(sign | infinity);
  int below = exponent < smallest ? smallest - exponent : 0;
  int shift = 52 - fraction_bits + below;
  if (shift > 54) return (uint16_t)sign; /* under half of the smallest subnormal */
  uint64_t mantissa = fraction | 1ull << 52;
  uint64_t kept = mantissa >> shift;
  uint64_t lost = mantissa & ((1ull << shift) - 1);
  uint64_t tie = 1ull << (shift - 1);
  if (lost > tie || (lost == tie && (kept & 1))) kept++;
  /* `kept` holds the implicit bit, which adds the one that is missing in the exponent; so does a carry. */
  uint64_t magnitude = kept + (below ? 0 : (uint64_t)(exponent - smallest) << fraction_bits);
  return (uint16_t)(sign | (magnitude < infinity ? magnitude : infinity));
}

static inline uint16_t cpu_double_to_half(double value) {
  return cpu_narrow_double(value, 5, 10);
}

static inline uint16_t cpu_double_to_bfloat(double value) {
  return cpu_narrow_double(value, 8, 7);
}

#endif
