// SPDX-License-Identifier: BSL-1.0
// The rows as an ordered pipeline: each token formats one leaf, and one stage writes in order.
#include "config.hpp"
#include "files.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

namespace weft_bench {
namespace {

struct token {
  long leaf = 0;
  std::string text;   // begins as the rows in front of the leaf
  std::string after;  // rows behind it
};

/// The leaves in order, with the rows of the groups that begin and end there.
void collect(records::group g, std::vector<token>& all) {
  if (g.is_leaf()) {
    all.emplace_back().leaf = g.from;
    return;
  }
  const std::size_t first = all.size();
  records::for_each_part(g, [&](records::group part) { collect(part, all); });
  all[first].text.insert(0, g.first_row());
  all.back().after += g.last_row();
}

outcome run(int index, unsigned workers) {
  const one_processor home(workers);
  const cleaner at_end;
  const records::collection c = collection_of(index);
  std::vector<token> tokens;
  collect({0, c.leaves}, tokens);  // a pipeline has no nesting; to flatten it is not timed
  const std::string path = scratch.file("rows");
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena(static_cast<int>(workers));
  arena.execute([&] {
    tbb::parallel_pipeline(
        1, tbb::make_filter<void, void>(tbb::filter_mode::parallel, [](tbb::flow_control& f) { f.stop(); }));
  });
  double seconds = 0;
  arena.execute([&] {
    const stopwatch clock;
    buffered_file out(path);
    std::size_t next = 0;
    tbb::parallel_pipeline(
        2 * workers,
        tbb::make_filter<void,
                         token*>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& f) -> token* {
          if (next < tokens.size()) return &tokens[next++];
          f.stop();
          return nullptr;
        }) & tbb::make_filter<token*, token*>(tbb::filter_mode::parallel, [&](token* t) {
          t->text.reserve(std::size_t(c.records_in(t->leaf)) * 50 + 500);
          records::write_leaf(c, t->leaf, [&](std::string_view text) { t->text += text; });
          t->text += t->after;
          return t;
        }) & tbb::make_filter<token*, void>(tbb::filter_mode::serial_in_order, [&](token* t) {
          out.append(t->text);
          std::string().swap(t->text);  // gives the memory back
        }));
    out.close();
    seconds = clock.seconds();
  });
  return plain_outcome(digest_of(path), c.leaves, seconds);
}

bool fits(int index, unsigned) { return is(index, rows); }

const registration entry("tbb-pipeline", run, fits);

}  // namespace
}  // namespace weft_bench
