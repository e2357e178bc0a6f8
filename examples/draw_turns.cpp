// SPDX-License-Identifier: BSL-1.0
// Draws what weft::orwl::overlay::write_times has written: three grids, of the times that each task (row) has
// spent in each iteration (column) waiting, computing, and in total. Reads standard input, writes SVG to
// standard output.
//
//     ./example_05_ordered_locks times | ./draw_turns > turns.svg
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct cell {
  std::size_t task, iteration;
  double ns[3];  // waiting, computing, total
};

/// From white over yellow and red to black.
std::string colour(double part) {
  const auto channel = [](double v) { return static_cast<int>(std::lround(255 * std::clamp(v, 0.0, 1.0))); };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", channel(3 - 3 * part), channel(2 - 3 * part),
                channel(1 - 3 * part));
  return text;
}

/// A time with a unit that suits it.
std::string time(double ns) {
  const char* const unit[] = {"ns", "us", "ms", "s"};
  int u = 0;
  for (; ns >= 1000 && u < 3; ++u) ns /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", ns, unit[u]);
  return text;
}

/// One line of the table. Returns false if it is none.
bool parse(const std::string& line, cell& c) {
  std::istringstream s(line);
  std::string field[6];
  for (std::string& f : field)
    if (!std::getline(s, f, ',')) return false;
  try {
    c = {std::stoul(field[0]),
         std::stoul(field[2]),
         {std::stod(field[3]), std::stod(field[4]), std::stod(field[5])}};
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace

int main() {
  std::vector<cell> cells;
  std::string line;
  std::getline(std::cin, line);  // the heading
  for (int number = 2; std::getline(std::cin, line); ++number) {
    cell c;
    if (!parse(line, c)) {
      std::cerr << "draw_turns: line " << number << " is not task,name,iteration,waiting,computing,total\n";
      return 1;
    }
    cells.push_back(c);
  }
  if (cells.empty()) {
    std::cerr << "draw_turns: there are no turns\n";
    return 1;
  }
  std::size_t tasks = 0, iterations = 0;
  for (const cell& c : cells)
    tasks = std::max(tasks, c.task + 1), iterations = std::max(iterations, c.iteration + 1);
  const double width = std::max(2.0, 400.0 / static_cast<double>(iterations));
  const double height = std::max(2.0, 400.0 / static_cast<double>(tasks));
  const double grid = width * static_cast<double>(iterations), high = height * static_cast<double>(tasks);
  std::cout << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << 3 * (grid + 40) + 20 << "\" height=\""
            << high + 90
            << "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
               "fill=\"white\"/>\n";
  const char* const title[] = {"waiting", "computing", "in total"};
  for (std::size_t g = 0; g < 3; ++g) {
    std::vector<double> sorted;
    for (const cell& c : cells) sorted.push_back(c.ns[g]);
    std::sort(sorted.begin(), sorted.end());
    const double most = std::max(sorted[sorted.size() * 99 / 100], 1.0);  // a few are far out
    const double left = 30 + static_cast<double>(g) * (grid + 40);
    std::cout << "<text x=\"" << left << "\" y=\"20\">" << title[g] << ": white 0, black " << time(most)
              << " and more, median " << time(sorted[sorted.size() / 2]) << "</text>\n";
    for (const cell& c : cells)
      std::cout << "<rect x=\"" << left + width * static_cast<double>(c.iteration) << "\" y=\""
                << 30 + height * static_cast<double>(c.task) << "\" width=\"" << width << "\" height=\""
                << height << "\" fill=\"" << colour(c.ns[g] / most) << "\"/>\n";
    std::cout << "<rect x=\"" << left << "\" y=\"30\" width=\"" << grid << "\" height=\"" << high
              << "\" fill=\"none\" stroke=\"black\"/>\n<text x=\"" << left << "\" y=\"" << high + 50
              << "\">iteration 0 to " << iterations - 1 << ", task 0 (top) to " << tasks - 1 << "</text>\n";
  }
  std::cout << "</svg>\n";
}
