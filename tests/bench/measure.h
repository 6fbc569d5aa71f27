#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Microseconds of CLOCK_MONOTONIC.
double now_us();

/// Durations in microseconds and what is quoted of them.
class Samples {
 public:
  void add(double us) { values_.push_back(us); }
  double percentile(double fraction) const;
  double median() const { return percentile(0.5); }

 private:
  mutable std::vector<double> values_;
};

/// "| name | 1 | 2 |"
void print_row(const std::vector<std::string>& cells);
void print_heading(const std::vector<std::string>& cells);

/// `value` with `digits` decimals.
std::string number(double value, int digits = 0);

}  // namespace bench
