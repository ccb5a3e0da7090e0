// Whether a new pattern may stand beside those that are there.
#pragma once

#include <tuza/http/route/pattern.h>
#include <tuza/http/route/route_node.h>
#include <tuza/http/route/segment_table.h>

namespace tuza::http {

// The pattern below `root` with which `added` conflicts; null: none. Two patterns conflict if some request matches both
// and neither is more specific: the paths of neither are a part of the other's, or they are the same and so is the method.
// Source: Go 1.22's net/http, where a method counts like a segment, so that "GET /" and "/api/" conflict.
const Route* find_conflict(const SegmentTable& texts, const RouteNode& root, const Pattern& added);

}  // namespace tuza::http
