// p-values of classes, and rules for a place whose classes have other shares than those of the calibration images.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// [images, classes] float64 on the CPU: the p-value of every class. Where the class is the label, it is at most alpha
/// with a probability of at most alpha, under the conditions of the rule's guarantee.
///
/// p_y = (sum of w_i over the n calibration images with s_i >= s(x, y), plus w_y) / (sum of all w_i, plus w_y), by the
/// conformal score s and w = 1, so that this is (1 + the number of them) / (n + 1) (Vovk, Gammerman and Shafer 2005);
/// w_i is the weight of the image's label where the rule is one of for_place(). The images are all of them, those of
/// the class (classwise), or those of its superclass. A class is in the rule's set where its p-value is above alpha.
///
/// `scores` and `first_image` as in sets_of(). Throws ConfigError where the rule has no such p-values: it is none of
/// conformal scores, shares its threshold otherwise, or was calibrated by a version that kept no scores.
at::Tensor p_values_of(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image = 0);

/// Throws ConfigError where p_values_of() would.
void check_has_p_values(const CalibratedRule& rule);

/// Weights of classes at a place, by label shift: P(y) differs there from the calibration images', and P(x | y) does
/// not.
struct PlaceWeights {
  std::vector<double> weights;  // [classes] w_y = q_y / p_y; 0: never in a set; kAlwaysIn: in every set
  int64_t never = 0;            // classes of weight 0
  int64_t always = 0;           // classes that the place has, and the calibration images do not
  double effective_images = 0;  // (sum w)^2 / (sum w^2) over the calibration images (Kish 1965)
};

/// By the prior q of the place, [classes], at least 0 and not all 0, of any sum. p_y is the share of class y in the
/// rule's calibration images.
PlaceWeights place_weights(const CalibratedRule& rule, const std::vector<double>& prior);

/// The same where only some classes occur, with the calibration images' shares among them. `occurs` [classes].
PlaceWeights place_weights(const CalibratedRule& rule, const std::vector<bool>& occurs);

/// The rule for a place: class y is in the set where p_y with these weights is above alpha, the same as one weighted
/// quantile a class with mass w_y at infinity (Tibshirani, Foygel Barber, Candes and Ramdas 2019; Podkopaev and Ramdas
/// 2021). Coverage at the place is at least 1 - alpha where the weights are exact and P(x | y) is unchanged; with
/// estimated weights approximately. A classwise rule holds for any shares, and only loses the classes of weight 0.
/// Throws ConfigError where the rule is neither, and what check_has_p_values() throws.
CalibratedRule for_place(const CalibratedRule& rule, const PlaceWeights& place);

}  // namespace settrain
