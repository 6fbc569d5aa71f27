#include "tests/bench/measure.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace bench {

double now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double Samples::percentile(double fraction) const {
  if (values_.empty()) return 0;
  std::sort(values_.begin(), values_.end());
  const auto last = static_cast<double>(values_.size() - 1);
  return values_[static_cast<std::size_t>(last * fraction)];
}

void print_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + cell + " |";
  std::cout << line << std::endl;
}

void print_heading(const std::vector<std::string>& cells) {
  print_row(cells);
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
  std::cout << line << std::endl;
}

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace bench
